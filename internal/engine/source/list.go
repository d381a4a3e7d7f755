package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// streamPage reads a page off its body, object by object. A page that says only after its items of
// which kind they are is asked for again, once.
func (s *Source) streamPage(ctx context.Context, opts metav1.ListOptions, each Each) (Page, error) {
	page, err := s.openPage(ctx, opts, each)
	if errors.Is(err, errLateKind) {
		page, err = s.openPage(ctx, opts, each)
	}
	return page, s.resource.Unquoted(err)
}

func (s *Source) openPage(ctx context.Context, opts metav1.ListOptions, each Each) (Page, error) {
	patience := s.Patience.List()
	body, err := s.open(ctx, opts, s.headPatience(patience))
	if err != nil {
		return Page{}, err
	}
	defer body.close()
	body.expect(patience)
	reader := s.listReader(body)
	page, err := s.readStream(reader, body.selected, each)
	if err != nil {
		return page, body.excuse(err)
	}
	return page, s.checkShard(body.shard, reader.Meta().ShardSelector)
}

// headPatience is how long the head of a list may take whose body may be silent for patience.
func (s *Source) headPatience(patience time.Duration) time.Duration {
	if head := s.resource.HeadPatience(); head > 0 {
		return min(patience, head)
	}
	return patience
}

// listReader returns a reader of a list. It keeps its buffers for the next page, if the answer says
// its format.
func (s *Source) listReader(body *stream) wire.ListReader {
	if body.format == wire.Undeclared {
		return wire.NewListReader(body, body.format, wire.Options{})
	}
	reader := &s.lists[body.format]
	if *reader == nil {
		*reader = wire.NewListReader(body, body.format, wire.Options{})
	} else {
		(*reader).Reset(body)
	}
	return *reader
}

func (s *Source) readStream(reader wire.ListReader, of *selected, each Each) (Page, error) {
	kind, page := s.newKindCheck(), Page{}
	for {
		encoded, err := reader.Next()
		if err == io.EOF {
			err = page.endOfStream(reader.Meta(), &kind)
			return page, err
		}
		if err != nil {
			if err := page.lose(err, each); err != nil {
				return page, err
			}
			continue
		}
		m := reader.Meta()
		says := len(encoded.Kind) > 0
		if err := kind.item(m.Kind, says); err != nil {
			return page, err
		}
		listed := s.listedType(m)
		if listed.Kind == "" && !says && !kind.proven && !s.Memory.late.mixed.Load() {
			page.Objects++
			return page, s.readLateKind(reader, &kind)
		}
		it, unreadable := s.readLent(encoded, listed, object.Place{Index: encoded.Index})
		kind.proven = kind.proven || says && unreadable == nil
		page.count(&it)
		if s.leavesOut(&it) {
			continue
		}
		if of != nil && unreadable == nil && of.leavesOut(&it) {
			s.noteUnselected(&it, of)
			continue
		}
		if err := each(it, unreadable); err != nil {
			return page, err
		}
	}
}

// errNoKind says that an answer does not say that it is a list.
var errNoKind = errors.New("the answer has items but no kind")

// endOfStream checks that what was read to its end was a list.
func (p *Page) endOfStream(m wire.ListMeta, kind *kindCheck) error {
	if m.Kind == "" {
		return errNoKind
	}
	p.ResourceVersion, p.Continue = m.ResourceVersion, m.Continue
	return kind.end(m.Kind)
}

// lose calls each for an object that the reader has lost, if err says that. The key is uncertain,
// because the object was not read to its end.
func (p *Page) lose(err error, each Each) error {
	var lost *wire.ItemError
	if !errors.As(err, &lost) {
		return err
	}
	it := object.Item{Place: object.Place{Index: lost.Index}}
	p.count(&it)
	return each(it, lost)
}

// readList hands the objects of a list on, one by one and each with memory of
// its own, so that none keeps the list.
func (s *Source) readList(list runtime.Object, of *selected, each Each) (Page, error) {
	if list == nil {
		return Page{}, fmt.Errorf("a list of %v is nil", s.Expected)
	}
	if isTable(list) {
		return Page{}, fmt.Errorf("a list of %v is a Table, which holds no objects", s.Expected)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return Page{}, fmt.Errorf("a list of %v is a %T: %w", s.Expected, list, err)
	}
	if err := s.checkListType(list); err != nil {
		return Page{}, err
	}
	kind, check, page := list.GetObjectKind().GroupVersionKind().Kind, s.newKindCheck(), Page{}
	err = meta.EachListItemWithAlloc(list, func(obj runtime.Object) error {
		says := obj != nil && obj.GetObjectKind().GroupVersionKind().Kind != ""
		if err := check.item(kind, says); err != nil {
			return err
		}
		it, unreadable := s.readDecoded(obj, object.Place{Index: page.Objects})
		check.proven = check.proven || says && unreadable == nil
		page.count(&it)
		if s.leavesOut(&it) {
			return nil
		}
		if unreadable == nil && of.leavesOut(&it) {
			s.noteUnselected(&it, of)
			return nil
		}
		return each(it, unreadable)
	})
	if err == nil && kind != "" {
		err = check.end(kind)
	}
	page.ResourceVersion, page.Continue = accessor.GetResourceVersion(), accessor.GetContinue()
	return page, err
}

// isTable reports whether a list is in the form that is made for people to read.
func isTable(list runtime.Object) bool {
	kind := list.GetObjectKind().GroupVersionKind()
	return kind.Group == metav1.GroupName && kind.Kind == "Table"
}
