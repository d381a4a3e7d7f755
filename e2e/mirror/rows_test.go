package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/sqlsink/pgtest"
)

// table is the database that all replicas write to.
type table struct {
	server *pgtest.Server
	name   string
}

// versions are those of the rows of a resource, by key. An object whose own resource version is not
// that of its row has a version that no server has.
func (d *table) versions(t *testing.T, of string, resource string) map[string]cluster.Version {
	t.Helper()
	text := d.server.Query(t, d.name, fmt.Sprintf(`SELECT namespace || '/' || name, uid,
		resource_version || CASE WHEN object::jsonb #>> '{metadata,resourceVersion}' = resource_version THEN '' ELSE ' is not that of the object' END
		FROM objects WHERE cluster = '%s' AND resource = '%s'`, of, resource))
	rows := map[string]cluster.Version{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) == 3 {
			rows[fields[0]] = cluster.Version{UID: types.UID(fields[1]), ResourceVersion: fields[2]}
		}
	}
	return rows
}

// differences are what the rows of the clusters have otherwise than their servers, sorted.
func (d *table) differences(ctx context.Context, t *testing.T, of map[string]*cluster.Cluster) (all []string) {
	t.Helper()
	for name, c := range of {
		for _, objects := range everything(t, c) {
			want, err := objects.Versions(ctx)
			require.NoError(t, err)
			have := d.versions(t, name, objects.Resource.Resource)
			for key, version := range want {
				if have[key] != version {
					all = append(all, fmt.Sprintf("%s %s %s: the server has %v, the row %v", name, objects.Resource.Resource, key, version, have[key]))
				}
			}
			for key, version := range have {
				if _, is := want[key]; !is {
					all = append(all, fmt.Sprintf("%s %s %s: the server has none, the row %v", name, objects.Resource.Resource, key, version))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// everything are the objects of all namespaces that mirrors are asked for.
func everything(t *testing.T, c *cluster.Cluster) []*cluster.Objects {
	t.Helper()
	pods, err := c.Pods(corev1.NamespaceAll)
	require.NoError(t, err)
	maps, err := c.ConfigMaps(corev1.NamespaceAll)
	require.NoError(t, err)
	return []*cluster.Objects{pods, maps}
}
