package source

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// maxMetadataRetries is how often a page of metadata is asked for again if the server says when.
const maxMetadataRetries = 5

// Metadata lists no more than the metadata of a resource, for an audit.
type Metadata struct {
	resource *server.Resource
	pageSize int64
	patience Patience
	expected object.Expected
	form     object.Form
	memory   Memory
	report   report.Report
	shard    api.Shard
	all      *Source
}

// NewMetadata returns the metadata of a shard of a resource. Learnt is what other Sources have
// learnt of its lists, and fail is called with errors that no call returns.
func NewMetadata(resource *server.Resource, of api.Shard, learnt *Memory, pageSize int64, patience Patience, fail func(error)) *Metadata {
	m := &Metadata{resource: resource.Retrying(maxMetadataRetries), pageSize: pageSize, patience: patience, shard: of}
	if m.pageSize == 0 {
		m.pageSize = listwatch.DefaultPageSize
	}
	m.expected = object.Expect(&metav1.PartialObjectMetadata{}, "", object.Public{})
	m.form = m.expected.Form(true, nil)
	m.memory.lists.learn(learnt.lists.known())
	m.memory.unselected.Store(true) // the informer reports it
	m.report.Handler = fail
	m.all = m.of(m.resource)
	return m
}

func (m *Metadata) of(resource *server.Resource) *Source {
	return New(Options{
		ListerWatcher: resource, Memory: &m.memory, Expected: &m.expected, Form: &m.form, Patience: m.patience, Shard: m.shard, Prompt: true, Report: &m.report,
	})
}

// MetadataItem is what a list of metadata shows of an object. It is lent for the call that has it.
type MetadataItem struct {
	Key     string
	Version keytable.Version
	// Bytes are how long it was on the wire.
	Bytes int
	// Unreadable tells that the object is there, and could not be read.
	Unreadable bool
}

// Page reads a page; an empty token is that of the first one.
func (m *Metadata) Page(ctx context.Context, token string, each func(MetadataItem)) (Page, error) {
	return m.page(ctx, m.all, metav1.ListOptions{Limit: m.pageSize, Continue: token}, each)
}

// Ask asks for one object.
func (m *Metadata) Ask(ctx context.Context, key string, each func(MetadataItem)) (Page, error) {
	return m.page(ctx, m.of(m.resource.Only(key)), metav1.ListOptions{}, each)
}

func (m *Metadata) page(ctx context.Context, from *Source, opts metav1.ListOptions, each func(MetadataItem)) (Page, error) {
	return from.Page(ctx, opts, func(it object.Item, unreadable error) error {
		item := MetadataItem{Key: it.Key, Version: it.Version, Unreadable: unreadable != nil}
		if it.Lent != nil {
			item.Bytes = len(it.Lent.Item.Bytes)
		}
		each(item)
		return ctx.Err()
	})
}
