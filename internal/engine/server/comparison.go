package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

const (
	// comparedAtOnce is how many objects a page of a comparison has.
	comparedAtOnce = 500
	// pagePatience is how long a page may take, and compareTimeout all of them.
	pagePatience, compareTimeout = 30 * time.Second, 2 * time.Minute
	// enoughStrangers are so many that a server is another one, although more objects could be read.
	enoughStrangers = comparedAtOnce
)

// Comparison tells by all objects of a server whether it is the one that is known, where an Inquiry
// about a few leaves that open.
type Comparison struct {
	// ResourceVersion is one up to which all objects of the shard are known.
	ResourceVersion string
	Shard           api.Shard
	// Lookup returns the version of a known object, and whether there is one. The version is empty
	// as far as it is not known.
	Lookup func(key string) (v keytable.Version, isKnown bool)

	strangers int
	// stranger is the first object that would be known.
	stranger object.Known
	same     bool
}

// Compare lists the metadata of the objects, in the newest state.
//
// One known object shows that the server is the one that is known, also if it was restored from a
// backup, and has given versions anew. If there is none, an object that is not newer than the known
// version shows that it is another one. The answer says nothing if all objects are newer, or have
// versions without an order. A refusal counts as no answer.
func (r *Resource) Compare(ctx context.Context, c Comparison) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	for token, more := "", true; more; more = more && token != "" {
		if token, more, err = r.comparePage(ctx, token, &c); err != nil {
			break
		}
	}
	switch {
	case c.same:
		return Answer{Identity: Same}, nil
	case isRefusal(err) && listwatch.Classify(err) != listwatch.Expired:
		return Answer{}, nil
	case err != nil:
		return Answer{}, err
	case c.strangers > 0:
		return Answer{
			Identity: Another,
			Expected: fmt.Sprintf("one without %s in version %s", c.stranger.Key, c.ResourceVersion),
			Found:    clusterOf(c.stranger.Key, c.stranger.Version),
		}, nil
	}
	return Answer{}, nil
}

// comparePage compares the objects of a page, and returns the token of the next one. More tells that
// the objects so far have not decided.
func (r *Resource) comparePage(ctx context.Context, token string, c *Comparison) (next string, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	opts := r.tweaks.apply(metav1.ListOptions{Limit: comparedAtOnce, Continue: token})
	request := r.get().AbsPath(r.path()...).
		SetHeader("Accept", metadataListOnly).
		Param("limit", fmt.Sprint(opts.Limit)).
		MaxRetries(0) // the caller asks again
	for name, value := range map[string]string{"labelSelector": opts.LabelSelector, "fieldSelector": opts.FieldSelector, "continue": token} {
		if value != "" {
			request.Param(name, value)
		}
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return "", false, r.explain(err)
	}
	defer body.Close()
	list := wire.NewListReader(body, wire.JSON, wire.Options{})
	for {
		it, err := list.Next()
		if err == io.EOF {
			return list.Meta().Continue, true, nil
		}
		if lost := new(wire.ItemError); errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return "", false, fmt.Errorf("objects of the server, to compare: %w", r.Unquoted(err))
		}
		key := cache.NewObjectName(string(it.Namespace), string(it.Name)).String()
		now := keytable.Version{ResourceVersion: string(it.ResourceVersion), UID: types.UID(it.UID)}
		if !c.visit(key, now) {
			return "", false, nil
		}
	}
}

// visit compares an object of the server, and reports whether that leaves it open which one it is.
func (c *Comparison) visit(key string, now keytable.Version) bool {
	was, isKnown := c.Lookup(key)
	identified := was.UID != "" && now.UID != ""
	switch {
	case isKnown && identified && was.UID == now.UID, isKnown && !identified && was.ResourceVersion != "" && was.ResourceVersion == now.ResourceVersion:
		c.same = true
	case isKnown && (!identified || !rv.NotNewer(was.ResourceVersion, c.ResourceVersion)):
		// It may have been another one at the known version.
	case rv.NotNewer(now.ResourceVersion, c.ResourceVersion) && object.InShard(c.Shard, key, string(now.UID)):
		if c.strangers++; c.strangers == 1 {
			c.stranger = object.Known{Key: strings.Clone(key), Version: now}
		}
	}
	return !c.same && c.strangers < enoughStrangers
}
