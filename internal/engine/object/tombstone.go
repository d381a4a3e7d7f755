package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Tombstone returns what is delivered for a deletion whose final state is not known: what was last
// known, as metadata of the kind. The kind may be empty.
func Tombstone(kind metav1.TypeMeta, key string, last keytable.Version) cache.DeletedFinalStateUnknown {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		name = cache.ObjectName{Name: key}
	}
	return cache.DeletedFinalStateUnknown{
		Key: key,
		Obj: &metav1.PartialObjectMetadata{
			TypeMeta: kind,
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       name.Namespace,
				Name:            name.Name,
				UID:             last.UID,
				ResourceVersion: last.ResourceVersion,
			},
		},
	}
}
