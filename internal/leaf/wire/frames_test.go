package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// protoFrame is a watch frame as the API server writes it.
func protoFrame(t testing.TB, eventType string, object []byte) []byte {
	event := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}
	b, err := event.Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}
