package clusters

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// folderEvery is how often the folder of kubeconfigs is read. Kubernetes itself takes about a
// minute to bring a change of a Secret into its volume.
const folderEvery = 5 * time.Second

// Folder is a directory with a kubeconfig for each cluster, in a file with the name of the cluster.
// Files come, go and change while mirror runs.
//
// It is read again and again, and compared by content: in the volume of a Secret, all files are
// links into a directory that is replaced as a whole, and so a file there neither changes nor gets
// a newer time.
type Folder struct {
	path   string
	add    func(name string, client *rest.Config) error
	remove func(name string)
	say    func(line string)

	added map[string][]byte // the content of each file whose cluster was added, by name
	told  map[string]string // what was said of a file, or of the folder itself, since it was well; by name
}

// NewFolder returns a folder whose clusters are given to add and remove. What is wrong with a file is
// said.
func NewFolder(path string, add func(string, *rest.Config) error, remove func(string), say func(string)) *Folder {
	return &Folder{path: path, add: add, remove: remove, say: say, added: map[string][]byte{}, told: map[string]string{}}
}

// Run looks at the folder until the context ends.
func (f *Folder) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { _ = f.Look() }, folderEvery) // an error was said
}

// Look adds the clusters of new files, removes those of files that are gone, and replaces those
// whose files have changed. What cannot be read changes nothing: the cluster stays as it was. The
// error is that of the folder as a whole.
func (f *Folder) Look() error {
	files, err := f.read()
	if f.note("", err); err != nil {
		return err
	}
	for name := range f.added {
		if _, is := files[name]; !is {
			f.remove(name)
			delete(f.added, name)
		}
	}
	maps.DeleteFunc(f.told, func(name, _ string) bool {
		_, is := files[name]
		return !is
	})
	for name, content := range files {
		var err error
		if before, is := f.added[name]; !is || !bytes.Equal(before, content) {
			err = f.take(name, content)
		}
		f.note(name, err)
	}
	return nil
}

// take adds the cluster of a file, instead of the one that it had before.
func (f *Folder) take(name string, content []byte) error {
	at, err := InKubeconfig(filepath.Join(f.path, name), nil)
	if err != nil {
		return err
	}
	if _, is := f.added[name]; is {
		f.remove(name)
		delete(f.added, name)
	}
	if err := f.add(name, at[0].Client); err != nil {
		return err
	}
	f.added[name] = content
	return nil
}

// read returns the content of each file, by name. A name that begins with a dot is none of a
// cluster: so are those of the directories that the files of a Secret's volume are links into.
func (f *Folder) read() (map[string][]byte, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("--clusters: %w", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		path := filepath.Join(f.path, e.Name())
		about, err := os.Stat(path)
		if strings.HasPrefix(e.Name(), ".") || err != nil || about.IsDir() {
			continue // a link that leads nowhere is being replaced
		}
		if files[e.Name()], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("--clusters: %w", err)
		}
	}
	return files, nil
}

// note says once what is wrong with a file, or with the folder, and forgets it when it is well
// again.
func (f *Folder) note(name string, err error) {
	if err == nil {
		delete(f.told, name)
		return
	}
	if f.told[name] == err.Error() {
		return
	}
	f.told[name] = err.Error()
	f.say(strings.TrimPrefix(name+": "+err.Error(), ": "))
}
