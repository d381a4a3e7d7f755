package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// A checkpoint has entries and metadata. What was read counts when Next has returned io.EOF.
func Example() {
	var file bytes.Buffer
	w := checkpoint.NewWriter(&file)
	web := keytable.Version{ResourceVersion: "1691"}.Binary()
	if err := errors.Join(
		w.Metadata(checkpoint.MetadataResourceVersion, "1700"),
		w.Entry("default/web", &web),
		w.Close(),
	); err != nil {
		fmt.Println(err)
		return
	}
	r := checkpoint.NewReader(&file)
	for {
		key, version, err := r.Next()
		if err == io.EOF {
			fmt.Println("go on from", r.Metadata()[checkpoint.MetadataResourceVersion])
			return
		} else if err != nil {
			fmt.Println("not to be believed:", err)
			return
		}
		fmt.Println(key, version.Version().ResourceVersion)
	}
	// Output:
	// default/web 1691
	// go on from 1700
}

// A journal behind the checkpoint has what happened since. A frame that was cut does not count, and
// those before it do.
func ExampleJournal() {
	var file bytes.Buffer
	if err := checkpoint.NewJournaledWriter(&file).Close(); err != nil {
		fmt.Println(err)
		return
	}
	var j checkpoint.Journal
	version := keytable.Version{ResourceVersion: "1702"}.Binary()
	j.Add(checkpoint.Begun, "default/web", &keytable.Binary{})
	j.Add(checkpoint.Acknowledged, "default/web", &version)
	file.Write(j.Take(nil))
	j.Add(checkpoint.Gone, "default/web", &keytable.Binary{})
	frame := j.Take(nil)
	file.Write(frame[:len(frame)-1]) // the process is killed while it appends

	r := checkpoint.NewReader(&file)
	if _, _, err := r.Next(); err != io.EOF {
		fmt.Println(err)
		return
	}
	for {
		record, key, version, err := r.NextRecord()
		if err != nil {
			fmt.Println(err, "torn:", r.Torn() != nil)
			return
		}
		switch record {
		case checkpoint.Begun:
			fmt.Println("begun:", key)
		case checkpoint.Acknowledged:
			fmt.Println("acknowledged:", key, version.Version().ResourceVersion)
		}
	}
	// Output:
	// begun: default/web
	// acknowledged: default/web 1702
	// EOF torn: true
}

// A save replaces the file as a whole, or leaves it as it was.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	file := checkpoint.NewFile(filepath.Join(dir, "pods.checkpoint"))

	unlock, err := file.Lock() // one process at a time
	if err != nil {
		fmt.Println(err)
		return
	}
	defer unlock()
	_, err = file.Lock()
	fmt.Println("locked:", errors.Is(err, api.ErrCheckpointInUse))

	fmt.Println(file.Save(ctx, func(to io.Writer) error { return checkpoint.NewWriter(to).Close() }))
	failed := file.Save(ctx, func(io.Writer) error { return errors.New("no more to write") })
	fmt.Println("failed:", failed != nil)

	saved, err := file.Load(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = saved.Close() }()
	_, _, err = checkpoint.NewReader(saved).Next()
	fmt.Println("the former one is whole:", err == io.EOF)
	// Output:
	// locked: true
	// <nil>
	// failed: true
	// the former one is whole: true
}
