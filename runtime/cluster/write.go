package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxTries is how often a write that depends on the object as it is in the cluster
// is begun when others change the object meanwhile.
const maxTries = 5

// Write carries out one write of one object and returns the API server's answer:
// the object as it is now, or nil where there is none to show. That is so after a
// delete of what is gone or never was there (an object that finalizers or a grace
// period still hold is returned), a create that has left an object alone, an
// eviction, a change of nothing that may be missing, and a patch of a subresource that is no part of the object. manager is
// the field manager, "" for the client's own.
//
// It is one request, and where w has a guard a read before it: the write then holds
// only for what was read, and both are repeated when others have changed the object
// in between.
//
// Errors are one line for people and never show what is in the object. They wrap
// client-go's status errors, so apierrors.IsConflict and the like hold, and
// [ErrNotServed] and [ErrFenced]. Events, sets and jq patches need more than a
// client: see [Writer].
func (c *Client) Write(ctx context.Context, manager string, w effect.Write) (map[string]any, error) {
	p, err := c.begin(ctx, manager, w)
	if err != nil {
		return nil, err
	}
	return p.run(ctx)
}

// begin finds out where w goes.
func (c *Client) begin(ctx context.Context, manager string, w effect.Write) (*pending, error) {
	manager = cmp.Or(manager, c.manager)
	act := action{word: string(w.Kind), ref: w.Ref}
	switch w.Kind {
	case effect.WriteApply, effect.WriteStatus:
		act.word = "apply"
	case effect.WriteCreate, effect.WriteDelete, effect.WriteEvict, effect.WritePatch:
	default:
		return nil, fmt.Errorf("cannot write %s: unknown kind of write %q", w.Ref, w.Kind)
	}
	if c.Others(w.Ref) {
		return nil, &Error{msg: fmt.Sprintf("cannot %s: another Starling takes its config from it, and no grant covers that", act), err: errNotGranted}
	}
	m, err := c.target(ctx, w.Ref)
	if err != nil {
		return nil, c.explain(err, act)
	}
	act.mapping = m
	p := &pending{client: c, manager: manager, mapping: m, write: w, act: act}
	if w.Owner != nil {
		if p.owner, err = c.ownerReference(ctx, w); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// pending is one write under way.
type pending struct {
	client  *Client
	manager string
	mapping Mapping
	write   effect.Write
	act     action
	owner   map[string]any // an entry of ownerReferences, or nil

	// jq runs the program of a jq patch.
	jq func(ctx context.Context, program string, obj map[string]any) (map[string]any, error)
	// ours, when set, looks at what is there before the write, and what comes to be there
	// meanwhile is looked at, too.
	ours func(live map[string]any) error
	// sign, when set, puts a signature into the annotations of what is written; live is what is there, as
	// far as that is known.
	sign func(annotations, live map[string]any)
	// live is what was read: what is there, or nil.
	live map[string]any
	// seen says that live was read just now.
	seen bool
	// whole says that an object is written as a whole if its API server does not apply it.
	whole bool
	// plain says that the API server takes no version with an object that it makes.
	plain bool
	// marked says that the object was sent with signatures.
	marked bool
	// sent is the body of the last request.
	sent any
}

// run reads where that is needed, and sends.
func (p *pending) run(ctx context.Context) (map[string]any, error) {
	w := p.write
	reads := p.ours != nil || w.Guard != nil && w.Kind != effect.WriteCreate ||
		w.Kind == effect.WritePatch && w.Patch.Type == effect.PatchJQ ||
		// A version alone does not keep an apply from making the object anew.
		w.Kind == effect.WriteApply && w.Unchanged != nil && w.Unchanged.UID == ""
	for try := 1; ; try++ {
		if reads {
			if !p.seen {
				var err error
				if p.live, err = p.client.Get(ctx, w.Ref); err != nil {
					return nil, err
				}
			}
			p.seen = false // another try reads
			if err := p.check(); err != nil {
				return nil, err
			}
		}
		obj, err := p.send(ctx)
		switch {
		case err == nil:
			if p.marked && uidOf(obj) != uidOf(p.live) { // also one that has gone since it was read, with its signature
				p.client.seal.Made(obj)
			}
			return obj, nil
		case w.IgnoreMissing && apierrors.IsNotFound(err) && !missingResource(err):
			return nil, nil
		case missingResource(err):
			p.client.forgetKind(p.mapping)
			if sub := subresourceOf(w); sub != "" {
				if _, other := p.client.target(ctx, w.Ref); other == nil {
					return nil, &Error{err: errors.Join(errNoSubresource, err),
						msg: fmt.Sprintf("cannot %s: a %s has no subresource %q", p.act, w.Ref.Kind, sub)}
				}
			}
			return nil, notServed(w.Ref.APIVersion, w.Ref.Kind)
		case reads && w.Unchanged == nil && try < maxTries && changedMeanwhile(err):
			continue
		case p.unseen() && !p.plain && apply.RefusesVersion(err):
			p.plain = true // the next try reads what is there
			continue
		}
		act := p.act
		act.known = func() *object.Parts { return p.quotable(ctx) }
		return nil, p.client.explain(err, act)
	}
}

// quotable is what an error about the write of a Secret may quote: what was sent, and what
// is there. It is nil when that cannot be read.
func (p *pending) quotable(ctx context.Context) *object.Parts {
	live := p.live
	if live == nil && p.write.Kind != effect.WriteCreate {
		var err error
		if live, err = p.client.Get(ctx, p.write.Ref); err != nil {
			return nil
		}
	}
	known := &object.Parts{}
	known.Secret(p.sent)
	known.Secret(live)
	return known
}

// subresourceOf names what of the object is written, "" for the whole.
func subresourceOf(w effect.Write) string {
	switch {
	case w.Kind == effect.WriteStatus:
		return "status"
	case w.Kind == effect.WritePatch:
		return w.Patch.Subresource
	}
	return ""
}

// stands says whether an apply would leave an object as it is.
func (p *pending) stands(live map[string]any) bool {
	p.live = live
	return p.check() == nil && apply.Same(p.wanted(), live, p.manager)
}

// check holds what is there against what the write is for.
func (p *pending) check() error {
	if !p.write.Guard.Passes(p.client.seal, p.write.Ref, p.live) {
		return &Error{msg: p.write.Guard.Refused, err: errNotGranted}
	}
	if p.write.Kind == effect.WriteApply && p.write.Unchanged != nil && p.live == nil {
		return p.client.explain(p.conflict(), p.act)
	}
	if p.ours != nil && p.live != nil {
		return p.ours(p.live)
	}
	return nil
}

var errNotGranted = errors.New("no grant allows it")

// changedMeanwhile tells a conflict of states from one of field managers.
func changedMeanwhile(err error) bool {
	return apierrors.IsConflict(err) && conflictOwners(err) == ""
}

// unseen says that the write makes the object, and changes none that is there.
func (p *pending) unseen() bool { return p.ours != nil && p.live == nil && p.write.Unchanged == nil }

// fence returns the state of the object for which the write holds: uid and
// resourceVersion, "" for any.
func (p *pending) fence() (uid, version string) {
	if u := p.write.Unchanged; u != nil {
		if u.UID == "" && p.live != nil {
			return uidOf(p.live), u.ResourceVersion
		}
		return u.UID, u.ResourceVersion
	}
	if p.unseen() && !p.plain {
		return "", apply.NoVersion
	}
	checked := p.ours != nil || p.write.Guard != nil && len(p.write.Guard.Any) > 0 || p.write.Kind == effect.WritePatch
	if p.live != nil && checked {
		return uidOf(p.live), versionOf(p.live)
	}
	return "", ""
}

func (p *pending) send(ctx context.Context) (map[string]any, error) {
	switch p.write.Kind {
	case effect.WriteCreate:
		return p.create(ctx)
	case effect.WritePatch:
		return p.patch(ctx)
	case effect.WriteStatus:
		return p.apply(ctx, "status")
	case effect.WriteDelete:
		return p.delete(ctx)
	case effect.WriteEvict:
		return p.evict(ctx)
	}
	obj, err := p.apply(ctx, "")
	if p.whole && apply.TakesNoApply(err) {
		return p.replace(ctx)
	}
	return obj, err
}

// object returns the object to send, with owner, mark and fence.
func (p *pending) object() map[string]any {
	w := p.write
	obj := p.wanted()
	uid, version := p.fence()
	if version == "" && (uid == "" || w.Unchanged == nil) {
		return obj
	}
	obj, metadata := effect.WithMetadata(obj)
	if version != "" && (w.Unchanged != nil || metadata["resourceVersion"] == nil) {
		metadata["resourceVersion"] = version
	}
	if w.Unchanged != nil && uid != "" {
		metadata["uid"] = uid // else an object that has gone would be made anew
	}
	return obj
}

// wanted returns the object as it should be, with owner and mark.
func (p *pending) wanted() map[string]any {
	w := p.write
	mark := w.Guard != nil && w.Guard.MarkFor != "" && w.Kind != effect.WriteStatus &&
		(p.live == nil || p.client.seal.MadeBy(w.Ref, p.live, w.Guard.MarkFor))
	p.marked = mark || p.sign != nil
	if p.owner == nil && !p.marked {
		return w.Object
	}
	obj, metadata := effect.WithMetadata(w.Object)
	if p.owner != nil {
		owners, _ := metadata["ownerReferences"].([]any)
		owners = slices.DeleteFunc(slices.Clone(owners), func(o any) bool {
			m, _ := o.(map[string]any)
			return m["uid"] == p.owner["uid"]
		})
		metadata["ownerReferences"] = append(owners, p.owner)
	}
	if mark {
		p.client.seal.MarkMade(effect.Cloned(metadata, "annotations"), w.Ref, p.live, w.Guard.MarkFor)
	}
	if p.sign != nil {
		p.sign(effect.Cloned(metadata, "annotations"), p.live)
	}
	return obj
}

func (p *pending) apply(ctx context.Context, subresource string) (map[string]any, error) {
	opts := map[string]string{}
	if p.write.Force {
		opts["force"] = "true"
	}
	return p.submit(ctx, http.MethodPatch, p.write.Ref.Name, subresource, applyType, p.object(), opts)
}

func (p *pending) create(ctx context.Context) (map[string]any, error) {
	obj, err := p.submit(ctx, http.MethodPost, "", "", jsonType, p.object(), nil)
	if apierrors.IsAlreadyExists(err) && p.write.IfAbsent {
		return nil, nil
	}
	return obj, err
}

// submit sends body to the object, to its subresource, or without a name to its
// collection, and reads the answer.
func (p *pending) submit(ctx context.Context, method, name, subresource, contentType string, body any, params map[string]string) (map[string]any, error) {
	p.sent = body
	text, err := json.Marshal(body)
	if err != nil {
		return nil, errors.New("the body of the request cannot be written as JSON")
	}
	req, err := p.client.request(method, p.mapping, p.write.Ref.Namespace, name)
	if err != nil {
		return nil, err
	}
	if subresource != "" {
		if !validSegment(subresource) {
			return nil, fmt.Errorf("%q is no name of a subresource", subresource)
		}
		req = req.Suffix(subresource)
	}
	if p.write.Kind == effect.WriteEvict {
		req = req.MaxRetries(0) // a budget that says no is not waited for here: the run is repeated
	}
	req = req.SetHeader("Content-Type", contentType).Param("fieldManager", p.manager).Body(text)
	for k, v := range params {
		req = req.Param(k, v)
	}
	answer, err := p.client.do(ctx, req)
	if err != nil {
		return nil, err
	}
	return decodeObject(answer)
}

// ownerReference is the entry that makes w.Owner the controller.
func (c *Client) ownerReference(ctx context.Context, w effect.Write) (map[string]any, error) {
	o := w.Owner
	uid := o.UID
	if uid == "" {
		live, err := c.Get(ctx, o.Ref)
		if err != nil {
			return nil, err
		}
		if live == nil {
			return nil, fmt.Errorf("cannot apply %s: its owner, %s, is not there", w.Ref, o.Ref)
		}
		uid = uidOf(live)
	}
	return map[string]any{
		"apiVersion": o.Ref.APIVersion, "kind": o.Ref.Kind, "name": o.Ref.Name, "uid": uid,
		"controller": true, "blockOwnerDeletion": false,
	}, nil
}

// target checks that ref names one object of a kind that is served.
func (c *Client) target(ctx context.Context, ref effect.Ref) (Mapping, error) {
	m, err := c.Mapping(ctx, ref.APIVersion, ref.Kind)
	if err != nil {
		return Mapping{}, err
	}
	if ref.Name == "" {
		return Mapping{}, fmt.Errorf("a %s without a name cannot be written: set metadata.name", ref.Kind)
	}
	if m.Namespaced && ref.Namespace == "" {
		return Mapping{}, fmt.Errorf("%s cannot be written: its kind lives in namespaces, so set metadata.namespace", ref)
	}
	return m, nil
}
