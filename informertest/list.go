package informertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is one answer to a list request.
type page struct {
	version   string // "" for none
	objects   []*object
	next      string // continue token, "" on the last page
	shard     string // the shardSelector, "" for none
	remaining *int64 // objects after this page, nil on the last page and where a selector hides their number
	// What to do to the next item, asked once for each in order.
	taint func() taint
}

func (p page) metadata() metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: p.version, Continue: p.next, RemainingItemCount: p.remaining}
	if p.shard != "" {
		m.ShardInfo = &metav1.ShardInfo{Selector: p.shard}
	}
	return m
}

// continuation is what a continue token carries. Clients must take it as opaque.
type continuation struct {
	Version string `json:"v"`
	// The resource version of the first page; -1 goes on with the newest state instead.
	RV    int64  `json:"rv"`
	Start string `json:"start"`
	// How many objects are left from Start on, so that not every page has to count them; 0: not
	// known.
	Left int64 `json:"left,omitempty"`
}

const expiredToken = "the continue token has expired: begin a new list, or go on inconsistently with the token of this Status"

const continuationVersion = "meta.k8s.io/v1"

func (c continuation) encode() string {
	c.Version = continuationVersion
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of strings and numbers always encodes
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeContinuation(token string) (continuation, error) {
	var c continuation
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	switch {
	case err != nil:
		return c, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	case c.Version != continuationVersion:
		return c, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: its version is %q, not %q", c.Version, continuationVersion))
	case c.RV == 0 || c.RV < -1 || c.Start == "" || c.Left < 0:
		return c, apierrors.NewBadRequest("invalid continue token: it does not say where to go on")
	}
	return c, nil
}

// reach says at which resource version a list is to be read.
type reach int

const (
	reachNewest     reach = iota
	reachAny              // whatever is at hand
	reachNotOlder         // the newest, if it is not older than the one given
	reachExact            // the one given, and no other
	reachNewestRest       // the newest, on the pages after one that expired
)

// listPlan is a list request, checked and understood, before any state is looked at.
type listPlan struct {
	selection
	reach reach
	rv    uint64
	limit int64 // 0: none
	start string
	left  int64 // 0: not known
	paged bool  // goes on from a continue token
}

func planList(v versions, namespace string, opts *metav1.ListOptions) (listPlan, error) {
	p := listPlan{limit: opts.Limit}
	_, err := checkOptions(opts)
	if err != nil {
		return p, err
	}
	if p.selection, err = newSelection(namespace, opts); err != nil {
		return p, err
	}
	if opts.Continue != "" {
		return p, p.resume(opts)
	}
	switch opts.ResourceVersion {
	case "":
		return p, nil
	case "0":
		// Any state will do: answered from the watch cache, which does not page.
		p.reach, p.limit = reachAny, 0
		return p, nil
	}
	if p.rv, err = v.parse(opts.ResourceVersion); err != nil {
		return p, err
	}
	switch {
	case opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		opts.ResourceVersionMatch == "" && opts.Limit > 0:
		p.reach = reachExact
	default:
		p.reach = reachNotOlder
	}
	return p, nil
}

// resume reads the plan of a further page from its token.
func (p *listPlan) resume(opts *metav1.ListOptions) error {
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return apierrors.NewBadRequest("resourceVersion must not be given together with continue: the token says at which one to go on")
	}
	c, err := decodeContinuation(opts.Continue)
	if err != nil {
		return err
	}
	if p.namespace != "" && !strings.HasPrefix(c.Start, p.namespace+"/") {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: it belongs to a list outside of namespace %q", p.namespace))
	}
	p.paged, p.start, p.left = true, c.Start, c.Left
	p.reach, p.rv = reachExact, uint64(c.RV)
	if c.RV < 0 {
		p.reach, p.rv = reachNewestRest, 0
	}
	return nil
}

// checkOptions is an error for options of a list or a watch that contradict each other. Initial
// tells that a watch shows the state first: also one that asks for it in the older way, by no
// resource version or 0. A kube-apiserver has this code.
func checkOptions(opts *metav1.ListOptions) (initial bool, err error) {
	own := internalversion.ListOptions{
		Watch:                opts.Watch,
		ResourceVersion:      opts.ResourceVersion,
		ResourceVersionMatch: opts.ResourceVersionMatch,
		Continue:             opts.Continue,
		SendInitialEvents:    opts.SendInitialEvents,
	}
	internalversion.SetListOptionsDefaults(&own, true)
	if wrong := validation.ValidateListOptions(&own, true); len(wrong) > 0 {
		return false, invalidOptions(wrong)
	}
	return own.SendInitialEvents != nil && *own.SendInitialEvents, nil
}

// waits reports whether the list is one that waits for its resource version.
func (p listPlan) waits() bool { return p.reach == reachNotOlder || p.reach == reachExact && !p.paged }

// list reads one page, of a replica if one is given.
func (s *store) list(t *table, p listPlan, old *replica) (Resource, page, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t.removed {
		return t.resource, page{}, unknownResource(t.resource.GroupVersionResource)
	}
	old = s.presentLocked(old)
	rv, reached := s.rv, s.reachedLocked(old)
	switch p.reach {
	case reachAny:
		if old != nil {
			return t.resource, p.page(old.of(t).state, old.rv), nil
		}
	case reachNotOlder:
		if p.rv > reached {
			return t.resource, page{}, tooLarge(s.versions, p.rv, reached)
		}
		if old != nil {
			return t.resource, p.page(old.of(t).state, old.rv), nil
		}
	case reachExact:
		if oldest := s.oldestLocked(t); p.rv < oldest || p.paged && p.rv > s.rv {
			return t.resource, page{}, p.expired(s.versions, oldest)
		}
		if !p.paged && p.rv > reached {
			return t.resource, page{}, tooLarge(s.versions, p.rv, reached)
		}
		rv = p.rv
	}
	return t.resource, p.page(t, rv), nil
}

// page reads a page of a table at a resource version.
func (p listPlan) page(t *table, rv uint64) page {
	out := page{version: t.resource.versions.format(rv)}
	var next string
	out.objects, next = t.scan(p.selection, p.start, rv, p.limit)
	if next == "" {
		return out
	}
	c := continuation{RV: int64(rv), Start: next}
	if !p.selective() {
		if p.reach == reachExact && p.left > int64(len(out.objects)) { // a token that was made up may tell less
			c.Left = p.left - int64(len(out.objects))
		} else {
			for range t.each(p.selection, next, rv) {
				c.Left++
			}
		}
		out.remaining = &c.Left
	}
	out.next = c.encode()
	return out
}

// expired is the error of a list whose state is forgotten. With a token it offers another, which
// gives the remaining keys in their newest state, for clients that can live with pages that do not
// fit together.
func (p listPlan) expired(v versions, compacted uint64) error {
	err := expired(v, p.rv, compacted)
	if p.paged {
		status := err.(*apierrors.StatusError)
		status.ErrStatus.Message = expiredToken
		status.ErrStatus.Continue = continuation{RV: -1, Start: p.start}.encode()
	}
	return err
}
