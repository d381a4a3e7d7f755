package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer"
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
	put    func(name string, client *rest.Config) error
	remove func(name string)
	say    func(line string)

	taken map[string][]byte // the content of each file whose cluster was put, by name
	told  map[string]string // what was said of a file, or of the folder itself, since it was well; by name
}

// NewFolder returns a folder whose clusters are given to put and remove. Put adds a cluster, or
// replaces it. What is wrong with a file is said.
func NewFolder(path string, put func(string, *rest.Config) error, remove func(string), say func(string)) *Folder {
	return &Folder{path: path, put: put, remove: remove, say: say, taken: map[string][]byte{}, told: map[string]string{}}
}

// Names are the names of the clusters that were put, sorted.
func (f *Folder) Names() []string { return slices.Sorted(maps.Keys(f.taken)) }

// Failed are the names of the files that the last look could not use, sorted.
func (f *Folder) Failed() []string { return slices.Sorted(maps.Keys(f.told)) }

// Run looks at the folder until the context ends.
func (f *Folder) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { _ = f.Look() }, folderEvery) // an error was said
}

// Look adds the clusters of new files, removes those of files that are gone, and replaces those
// whose files have changed. A file that cannot be read changes nothing: its cluster stays as it was,
// and so do all others. The error is that of the folder as a whole.
func (f *Folder) Look() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		err = fmt.Errorf("--clusters: %w", err)
	}
	if f.note("", err); err != nil {
		return err
	}
	here := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		// A name that begins with a dot is none of a cluster: so are those of the directories that the
		// files of a Secret's volume are links into.
		if strings.HasPrefix(name, ".") {
			continue
		}
		err := f.take(name)
		if _, gone := os.Lstat(filepath.Join(f.path, name)); err != nil && errors.Is(gone, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		here[name] = true
		f.note(name, err)
	}
	for _, name := range f.Names() {
		if !here[name] {
			f.remove(name)
			delete(f.taken, name)
		}
	}
	maps.DeleteFunc(f.told, func(name, _ string) bool { return !here[name] })
	return nil
}

// take puts the cluster of a file that is new or has changed.
func (f *Folder) take(name string) error {
	path := filepath.Join(f.path, name)
	about, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !about.Mode().IsRegular() { // to open a pipe would wait for its other end
		return errors.New("it is skipped, because it is no regular file")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if before, is := f.taken[name]; is && bytes.Equal(before, content) {
		return nil
	}
	at, err := InKubeconfig(path, nil)
	if err != nil {
		return err
	}
	// A certificate that cannot be read must not end the cluster.
	if _, err := informer.NewDynamicListerWatcherFactory(at[0].Client); err != nil {
		return err
	}
	if err := f.put(name, at[0].Client); err != nil {
		return err
	}
	f.taken[name] = content
	return nil
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
