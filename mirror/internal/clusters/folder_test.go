package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// watchedFolder is a folder, and what it has told.
type watchedFolder struct {
	*Folder
	hosts  map[string]string // of the clusters that were added
	events []string
	said   []string
}

func newWatchedFolder(path string) *watchedFolder {
	w := &watchedFolder{hosts: map[string]string{}}
	w.Folder = NewFolder(path,
		func(name string, client *rest.Config) error {
			if client.Host == "https://refused" {
				return errors.New("not this one")
			}
			w.hosts[name], w.events = client.Host, append(w.events, "add "+name)
			return nil
		},
		func(name string) {
			delete(w.hosts, name)
			w.events = append(w.events, "remove "+name)
		},
		func(line string) { w.said = append(w.said, line) })
	return w
}

func (w *watchedFolder) put(t *testing.T, name, host string) {
	t.Helper()
	from := writeKubeconfig(t, host)
	require.NoError(t, os.Rename(from, filepath.Join(w.path, name)))
}

func TestFolderFollowsItsFiles(t *testing.T) {
	w := newWatchedFolder(t.TempDir())
	require.NoError(t, w.Look())
	require.Empty(t, w.hosts)

	w.put(t, "east", "https://east")
	w.put(t, "west", "https://west")
	require.NoError(t, os.Mkdir(filepath.Join(w.path, "directory"), 0o700))
	w.put(t, ".hidden", "https://hidden")
	require.NoError(t, w.Look())
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://east", "west": "https://west"}, w.hosts)
	require.Len(t, w.events, 2, "the second look has found nothing new")

	w.events = nil
	w.put(t, "east", "https://moved")
	require.NoError(t, os.Remove(filepath.Join(w.path, "west")))
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://moved"}, w.hosts)
	require.ElementsMatch(t, []string{"remove west", "remove east", "add east"}, w.events)
	require.Empty(t, w.said)
}

// A file that cannot be read, and a folder that is not there, change nothing, and are told once.
func TestFolderKeepsWhatItHasWhenItCannotRead(t *testing.T) {
	w := newWatchedFolder(t.TempDir())
	w.put(t, "east", "https://east")
	require.NoError(t, w.Look())

	require.NoError(t, os.WriteFile(filepath.Join(w.path, "east"), []byte("no kubeconfig"), 0o600))
	w.put(t, "west", "https://refused")
	require.NoError(t, w.Look())
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://east"}, w.hosts)
	require.Len(t, w.said, 2)
	require.ElementsMatch(t, []string{"east", "west"}, []string{w.said[0][:4], w.said[1][:4]})
	require.Contains(t, w.said, "west: not this one")

	away := w.path + "-away"
	require.NoError(t, os.Rename(w.path, away))
	require.ErrorContains(t, w.Look(), "--clusters: ")
	require.Error(t, w.Look())
	require.Len(t, w.said, 3)
	require.Len(t, w.hosts, 1)

	require.NoError(t, os.Rename(away, w.path))
	w.put(t, "east", "https://east")
	require.NoError(t, os.Remove(filepath.Join(w.path, "west")))
	require.NoError(t, w.Look())
	require.Equal(t, []string{"add east"}, w.events, "the cluster has gone on all the time")
	require.Len(t, w.said, 3)
	require.Empty(t, w.told)
}

// The kubelet brings a new Secret into a volume by replacing a link to a directory.
func TestFolderOfASecretsVolume(t *testing.T) {
	w := newWatchedFolder(t.TempDir())
	version := func(name string, hosts map[string]string) {
		dir := filepath.Join(w.path, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		for cluster, host := range hosts {
			require.NoError(t, os.Rename(writeKubeconfig(t, host), filepath.Join(dir, cluster)))
		}
		next := filepath.Join(w.path, "..data_tmp")
		require.NoError(t, os.Symlink(name, next))
		require.NoError(t, os.Rename(next, filepath.Join(w.path, "..data")))
	}
	version("..2026_1", map[string]string{"east": "https://east", "west": "https://west"})
	for _, cluster := range []string{"east", "west", "north"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", cluster), filepath.Join(w.path, cluster)))
	}
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://east", "west": "https://west"}, w.hosts)

	version("..2026_2", map[string]string{"east": "https://east", "north": "https://north"})
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://east", "north": "https://north"}, w.hosts)
	require.NotContains(t, w.events, "remove east")
	require.Empty(t, w.said)
}

// writeKubeconfig writes a file with one context.
func writeKubeconfig(t *testing.T, host string) (path string) {
	config := api.NewConfig()
	config.Clusters["any"] = &api.Cluster{Server: host}
	config.Contexts["any"] = &api.Context{Cluster: "any"}
	config.CurrentContext = "any"
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
