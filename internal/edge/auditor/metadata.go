package auditor

import (
	"context"

	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/engine/source"
)

// metadata is the server of an audit: the lists of metadata that the engine reads.
type metadata struct{ *source.Metadata }

var _ audit.Server = metadata{}

// Page implements audit.Server.
func (m metadata) Page(ctx context.Context, token string, each func(audit.Item)) (audit.Page, error) {
	return pageOf(m.Metadata.Page(ctx, token, itemsOf(each)))
}

// Ask implements audit.Server.
func (m metadata) Ask(ctx context.Context, key string, each func(audit.Item)) (audit.Page, error) {
	return pageOf(m.Metadata.Ask(ctx, key, itemsOf(each)))
}

func itemsOf(each func(audit.Item)) func(source.MetadataItem) {
	return func(it source.MetadataItem) { each(audit.Item(it)) }
}

func pageOf(p source.Page, err error) (audit.Page, error) {
	return audit.Page{ResourceVersion: p.ResourceVersion, Continue: p.Continue}, err
}
