package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
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

// cut is a certificate that was not written to its end.
const cut = "-----BEGIN CERTIFICATE-----\nMIIB"

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
	require.ElementsMatch(t, []string{"remove west", "add east"}, w.events)
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
	require.Empty(t, w.Failed())
}

// An entry that cannot be read, or is no file, is told by its name. Its cluster goes on as it was, and so
// do all others.
func TestOddEntriesOfAFolder(t *testing.T) {
	for name, odd := range map[string]func(t *testing.T, path string){
		"link that leads nowhere": func(t *testing.T, path string) { require.NoError(t, os.Symlink("nowhere", path)) },
		"link to itself":          func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) },
		"pipe":                    func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
		"directory":               func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
		"file that fails":         func(t *testing.T, path string) { require.NoError(t, os.Symlink("/proc/self/mem", path)) },
		"empty file":              func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) },
		"cut certificate": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(writeKubeconfigWith(t, api.Cluster{Server: "https://cut", CertificateAuthorityData: []byte(cut)}), path))
		},
		"certificate that is not there": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(writeKubeconfigWith(t, api.Cluster{Server: "https://cut", CertificateAuthority: "/nowhere/ca.crt"}), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchedFolder(t.TempDir())
			w.put(t, "east", "https://east")
			w.put(t, "south", "https://south")
			require.NoError(t, w.Look())
			require.NoError(t, os.Remove(filepath.Join(w.path, "east")))
			odd(t, filepath.Join(w.path, "east"))
			odd(t, filepath.Join(w.path, "north"))
			w.put(t, "west", "https://west")
			w.events = nil
			require.NoError(t, w.Look())
			require.NoError(t, w.Look())
			require.Equal(t, []string{"add west"}, w.events)
			require.Equal(t, map[string]string{"east": "https://east", "south": "https://south", "west": "https://west"}, w.hosts)
			require.Equal(t, []string{"east", "north"}, w.Failed())
			require.Len(t, w.said, 2)
			slices.Sort(w.said)
			require.Regexp(t, "^east: .", w.said[0])
			require.Regexp(t, "^north: .", w.said[1])

			require.NoError(t, os.Remove(filepath.Join(w.path, "north")))
			require.NoError(t, os.Remove(filepath.Join(w.path, "east")))
			require.NoError(t, w.Look())
			require.Equal(t, []string{"add west", "remove east"}, w.events)
			require.Empty(t, w.Failed())
		})
	}
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
	link := func(cluster string) {
		require.NoError(t, os.Symlink(filepath.Join("..data", cluster), filepath.Join(w.path, cluster)))
	}
	link("east")
	link("west")
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://east", "west": "https://west"}, w.hosts)

	version("..2026_2", map[string]string{"east": "https://east", "north": "https://north"})
	require.NoError(t, os.Remove(filepath.Join(w.path, "west")))
	link("north")
	require.NoError(t, w.Look())
	require.Equal(t, map[string]string{"east": "https://east", "north": "https://north"}, w.hosts)
	require.NotContains(t, w.events, "remove east")
	require.Empty(t, w.said)
}

// writeKubeconfig writes a file with one context.
func writeKubeconfig(t *testing.T, host string) (path string) {
	return writeKubeconfigWith(t, api.Cluster{Server: host})
}

// writeKubeconfigWith writes a file with one context, of this cluster.
func writeKubeconfigWith(t *testing.T, of api.Cluster) (path string) {
	config := api.NewConfig()
	config.Clusters["any"] = &of
	config.Contexts["any"] = &api.Context{Cluster: "any"}
	config.CurrentContext = "any"
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
