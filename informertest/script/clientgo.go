package script

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// ClientGo makes client-go's dynamic informer. It ignores [Config], because it has its own ways.
func ClientGo(s Setup) (*Subject, error) {
	client, err := dynamic.NewForConfig(s.Client)
	if err != nil {
		return nil, err
	}
	i := dynamicinformer.NewFilteredDynamicInformer(client, s.Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { s.Failed(err) }); err != nil {
		return nil, err
	}
	registration, err := i.AddEventHandler(s.Handler)
	if err != nil {
		return nil, err
	}
	return &Subject{
		Run:       func(ctx context.Context) { i.RunWithContext(ctx) },
		Once:      true,
		HasSynced: registration.HasSynced,
		Stored: func() map[string]string {
			stored := map[string]string{}
			for _, obj := range i.GetStore().List() {
				if m, ok := obj.(metav1.Object); ok {
					stored[cache.MetaObjectToName(m).String()] = m.GetResourceVersion()
				}
			}
			return stored
		},
	}, nil
}
