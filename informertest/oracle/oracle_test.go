package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

func TestCheckOfNothing(t *testing.T) {
	require.NoError(t, oracle.New(oracle.Options{}).Check())
}

func TestBackInTime(t *testing.T) {
	o := oracle.New(oracle.Options{})
	o.Started(oracle.Run{})
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "a", UID: "A", ResourceVersion: "v-x"})
	o.Wrote(oracle.Write{Type: oracle.Updated, Key: "a", UID: "A", ResourceVersion: "v-b"})
	o.Told(oracle.Event{Type: informer.Added, Key: "a", UID: "A", ResourceVersion: "v-b"})(nil)
	require.NoError(t, o.Check())
	o.Told(oracle.Event{Type: informer.Updated, Key: "a", UID: "A", ResourceVersion: "v-x"})(nil)
	require.ErrorContains(t, o.Check(), "ordered: a: Updated a, version v-x, UID A: back in time")
}

func TestStoredIsNotWhatTheServerHas(t *testing.T) {
	o := oracle.New(oracle.Options{})
	o.Started(oracle.Run{})
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "a", UID: "A", ResourceVersion: "1"})
	o.Settled(map[string]string{"a": "1"})
	require.NoError(t, o.Check())
	o.Settled(map[string]string{})
	require.ErrorContains(t, o.Check(), "equal: a: not stored")
}
