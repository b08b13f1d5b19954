package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Children carries out what a controller does about the children of one parent, side by side: one that
// fails holds up no other. It says what has become of each. The error tells of the first that failed, and how
// many did.
func (w *Writer) Children(ctx context.Context, manager string, wr effect.Write) ([]effect.Fate, error) {
	fates := make([]effect.Fate, len(wr.Children))
	order := apply.Order{Width: w.o.SideBySide, Ends: func(error) bool { return ctx.Err() != nil }}
	failed, err := order.Each(len(fates), func(int) string { return "" }, func(i int) error {
		form, err := w.child(ctx, manager, wr.Children[i], wr.Cause)
		if err == nil {
			fates[i] = effect.Fate{Written: true, Form: form}
		} else if ctx.Err() == nil {
			if pos := cmp.Or(wr.Children[i].Pos, wr.Pos); pos != "" {
				err = fmt.Errorf("%s: %w", pos, err)
			}
			fates[i].Err = err
		}
		return err
	})
	switch {
	case err != nil || len(failed) == 0:
		return fates, err
	case len(failed) > 1:
		return fates, fmt.Errorf("%w (%d of %d writes fail)", failed[0], len(failed), len(fates))
	}
	return fates, failed[0]
}

// child carries out one write. Form is that of [effect.Fate].
func (w *Writer) child(ctx context.Context, manager string, m effect.Write, cause *effect.Cause) (form string, err error) {
	switch {
	case m.Kind == effect.WriteFields:
		return "", w.fields(ctx, m, cause)
	case m.Kind == effect.WriteDelete:
		return "", w.deleteChild(ctx, manager, m, cause)
	}
	p, err := w.o.Client.begin(ctx, manager, m)
	if err != nil {
		return "", err
	}
	p.whole = true
	seal := w.o.Client.seal
	if m.Kind == effect.WritePatch { // it asks for the signature of what an earlier version has made
		body, _ := m.Patch.Body.(map[string]any)
		p.write.Patch = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{"metadata": map[string]any{"uid": m.Unchanged.UID, "annotations": map[string]any{
			effect.ChildSignature: seal.Sign(m.Ref, m.Unchanged.UID, childClaim(body)...),
		}}}}
	}
	if m.Kind == effect.WriteApply && seal != nil {
		p.sign = func(annotations, live map[string]any) {
			uid := uidOf(live)
			if m.Unchanged != nil {
				uid = m.Unchanged.UID
			}
			if uid != "" && annotations[effect.ChildSignature] != nil {
				return // it has been looked at
			}
			annotations[effect.ChildSignature] = seal.Sign(m.Ref, uid, childClaim(m.Object)...)
		}
	}
	if m.Kind == effect.WriteApply && m.Unchanged == nil {
		p.seen = true // the watch shows none; an apply for no object meets a conflict where one is, which then is read
		p.ours = func(live map[string]any) error {
			if w.madeFor(live, m.Object, manager) {
				return errFound
			}
			parent := reconcile.Parent{Controller: reconcile.ControllerOf(m.Object), Module: effect.ManagerModule(manager)}
			parent.Key, parent.UID = reconcile.ParentOf(m.Object)
			keeper := reconcile.Keeper(live, parent)
			why, do := "this controller did not make it for this parent", "delete it, or give the child another name"
			switch {
			case m.Adopt && keeper == "":
				return nil
			case keeper == "":
				do = "delete it, give the child another name, or say adopt = True, if the part has no fill"
			case m.Adopt:
				why = "is not taken over, as " + keeper
			}
			return fmt.Errorf("cannot apply %s: it is there, and %s: %s", m.Ref, why, do)
		}
	}
	obj, err := w.applyClaimed(ctx, p, cause)
	switch {
	case errors.Is(err, errFound):
		return "", w.found(ctx, manager, m, p.live, cause)
	case m.Recreate && m.Unchanged != nil && fixed(err): // only what is a child already
		return "", w.deleteChild(ctx, manager, m, cause)
	case err != nil || m.Kind != effect.WriteApply:
		return "", err
	case m.Unchanged == nil && !childSigned(seal, m.Object, obj): // the clock of the API server is another one
		m.Unchanged = &effect.Unchanged{UID: uidOf(obj)}
		return w.child(ctx, manager, m, cause)
	case !Same(m.Object, obj, manager, ""):
		form = Form(m.Object, obj, manager)
	}
	return form, nil
}

// applyClaimed writes an object that is ours, as is known or as p finds out.
func (w *Writer) applyClaimed(ctx context.Context, p *pending, cause *effect.Cause) (map[string]any, error) {
	asked := time.Now()
	obj, err := p.run(ctx)
	if err == nil {
		obj, err = w.freed(ctx, p.manager, p.write.Ref, obj)
	}
	if err == nil && obj != nil {
		w.o.Observe(p.write.Ref, obj, cause, asked)
	}
	return obj, err
}

// deleteChild deletes a child, unless somebody has retained it, or made it their own, since it was seen: a watch keeps
// no version of it. The decision has looked at the signature of the object with this uid.
func (w *Writer) deleteChild(ctx context.Context, manager string, m effect.Write, cause *effect.Cause) error {
	return w.remove(ctx, manager, m.Ref, nil, cause, func(live map[string]any) bool {
		a := apply.FieldsOf(live, manager, "")
		ours := marked(a) && a.Owns("labels", reconcile.ControllerLabel) || cleared(live, manager)
		return ours && m.Unchanged != nil && uidOf(live) == m.Unchanged.UID && (m.Object != nil || !reconcile.ChildOf(live).Retain)
	})
}

// errFound says that a child is there which was not seen.
var errFound = errors.New("the child is there")

// found has a child seen that was not: it has lost its label, or the name of its parent, whom its events
// wake. The next run decides about it, with the values that were made with the child.
func (w *Writer) found(ctx context.Context, manager string, m effect.Write, live map[string]any, cause *effect.Cause) error {
	label := reconcile.ControllerOf(m.Object)
	parent, _ := reconcile.ParentOf(m.Object)
	if named, _ := reconcile.ParentOf(live); reconcile.ControllerOf(live) == label && named == parent {
		w.o.Observe(m.Ref, live, cause, time.Now())
		return nil
	}
	_, err := w.observed(ctx, manager, effect.Write{
		Kind: effect.WritePatch, Ref: m.Ref, Pos: m.Pos, Unchanged: &effect.Unchanged{UID: uidOf(live), ResourceVersion: versionOf(live)},
		Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{
			"metadata": map[string]any{
				"labels": map[string]any{reconcile.ControllerLabel: label}, "annotations": map[string]any{reconcile.ParentAnnotation: parent},
			},
		}},
	}, cause)
	return err
}

// madeFor says whether manager has made live for the parent of want. Of two controllers of one name,
// those of two instances, the label tells which one it was.
func (w *Writer) madeFor(live, want map[string]any, manager string) bool {
	_, of := reconcile.ParentOf(want)
	_, is := reconcile.ParentOf(live)
	a := apply.FieldsOf(live, manager, "")
	seal := w.o.Client.seal
	signed := childSigned(seal, want, live)
	return (signed || seal.TakesUnsigned()) && is == of && (marked(a) || signed && cleared(live, manager)) && reconcile.ChildOf(live).Foreign == "" &&
		(reconcile.ControllerOf(live) == reconcile.ControllerOf(want) || !a.Owns("labels", reconcile.ControllerLabel))
}

// childClaim is what is signed of a child: whose it is.
func childClaim(obj map[string]any) []string {
	_, uid := reconcile.ParentOf(obj)
	return []string{"child", reconcile.ControllerOf(obj), uid}
}

// childSigned says whether live carries the signature of the child that want says it is.
func childSigned(seal *effect.Seal, want, live map[string]any) bool {
	return seal.Signs(textOf(live, "annotations", effect.ChildSignature), effect.RefOf(live), live, childClaim(want)...)
}

// marked says whether the manager has named the parent. One that somebody else has written, such as the
// uid of another parent, has no child deleted.
func marked(a *apply.Fields) bool {
	return a != nil && a.Owns("annotations", reconcile.ParentUIDAnnotation)
}

// cleared says that somebody has cleared managedFields, or the API server has no server-side apply: the signature alone
// tells who has made the object.
func cleared(live map[string]any, manager string) bool {
	entries := effect.At[[]any](live, "metadata", "managedFields")
	return len(entries) == 0 || nobodyIn(entries) >= 0 || apply.PlainOf(live, manager)
}

func nobodyIn(entries []any) int {
	return slices.IndexFunc(entries, func(e any) bool { entry, _ := e.(map[string]any); return entry["manager"] == apply.Nobody })
}

// freed takes from nobody what an object has that was applied after somebody had cleared managedFields: else fields
// that are wanted no more would stay.
func (w *Writer) freed(ctx context.Context, manager string, ref effect.Ref, live map[string]any) (map[string]any, error) {
	at := nobodyIn(effect.At[[]any](live, "metadata", "managedFields"))
	if at < 0 {
		return live, nil
	}
	return w.o.Client.Write(ctx, manager, effect.Write{
		Kind: effect.WritePatch, Ref: ref, Unchanged: &effect.Unchanged{UID: uidOf(live), ResourceVersion: versionOf(live)},
		Patch: &effect.Patch{Type: effect.PatchJSON, Body: []any{map[string]any{"op": "remove", "path": fmt.Sprintf("/metadata/managedFields/%d", at)}}},
	})
}

// fixed tells that the API server has refused the change of a field that cannot be changed. It has no
// reason for that, only words.
func fixed(err error) bool {
	var api apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &api) || api.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(api.Status().Details.Causes, func(c metav1.StatusCause) bool {
		refused := c.Type == metav1.CauseTypeFieldValueInvalid || c.Type == metav1.CauseTypeForbidden
		return refused && cannotChange.MatchString(c.Message)
	})
}

var cannotChange = regexp.MustCompile(`immutable|may not (be changed|change)|updates to `)

// Same says whether a forced apply of want by manager would leave live, or that subresource of it, as it is. False
// where that is not known.
func Same(want, live map[string]any, manager, subresource string) bool {
	owned := apply.FieldsOf(live, manager, subresource)
	return apply.SameAs(asSigned(want, live, owned), live, owned, apply.Equal) || apply.AsNoted(want, live, manager)
}

// Owns is Same whatever the values are: somebody who changes one takes it from manager.
func Owns(want, live map[string]any, manager, subresource string) bool {
	owned := apply.FieldsOf(live, manager, subresource)
	return apply.SameAs(asSigned(want, live, owned), live, owned, func(_, _ any) bool { return true })
}

// asSigned is want with the signature that manager has put on live: it differs from one write to another.
func asSigned(want, live map[string]any, owned *apply.Fields) map[string]any {
	if owned == nil || !owned.Owns("annotations", effect.ChildSignature) {
		return want
	}
	return reconcile.Signed(want, live)
}

// Written says whether manager has made live a child. Signed says whether it carries the signature, too: else
// somebody has written the marks, or an earlier version.
func Written(seal *effect.Seal, live map[string]any, manager string) (made, signed bool) {
	signed = childSigned(seal, live, live)
	return marked(apply.FieldsOf(live, manager, "")) || signed && cleared(live, manager), signed
}

// Taker returns the last one of the other managers of an object, "" for none. Those that write its status only do not
// count.
func Taker(live map[string]any, manager string) (taker string) {
	for entry := range apply.Entries(live) {
		if by, _ := entry["manager"].(string); by != manager && by != "" && entry["subresource"] != "status" {
			taker = by
		}
	}
	return taker
}
