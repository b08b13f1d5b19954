package rest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/starling-operator/starling/runtime/sim/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// number reads a whole number of the query.
func number(q url.Values, name string) (int64, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("%s=%q is no number", name, text))
	}
	return n, nil
}

// deleteOptions reads how to delete, from the body or the query.
func (q *request) deleteOptions() (store.DeleteOptions, error) {
	var out store.DeleteOptions
	body, err := q.read()
	if err != nil {
		return out, err
	}
	var o metav1.DeleteOptions
	if len(body) > 0 {
		decode := func() error { return json.Unmarshal(body, &o) }
		if q.isProtobuf() {
			decode = func() error { return decodeDeleteOptions(body, &o) }
		}
		if err := decode(); err != nil {
			return out, apierrors.NewBadRequest("the body is no DeleteOptions: " + err.Error())
		}
	}
	if p := q.query.Get("propagationPolicy"); p != "" && o.PropagationPolicy == nil {
		o.PropagationPolicy = (*metav1.DeletionPropagation)(&p)
	}
	if len(o.DryRun) == 0 {
		o.DryRun = q.query["dryRun"]
	}
	if errs := metavalidation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return out, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	//lint:ignore SA1019 deprecated, and taken all the same
	if orphan := o.OrphanDependents; orphan != nil {
		out.Propagation = metav1.DeletePropagationBackground
		if *orphan {
			out.Propagation = metav1.DeletePropagationOrphan
		}
	}
	if o.PropagationPolicy != nil {
		out.Propagation = *o.PropagationPolicy
	}
	for _, v := range o.DryRun {
		if v != metav1.DryRunAll {
			return out, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", field.ErrorList{
				field.NotSupported(field.NewPath("dryRun"), o.DryRun, []string{metav1.DryRunAll})})
		}
		out.DryRun = true
	}
	if p := o.Preconditions; p != nil {
		out.UID, out.Version = string(ptr.Deref(p.UID, "")), ptr.Deref(p.ResourceVersion, "")
	}
	return out, nil
}

// checkList refuses combinations of what a list or watch may say.
func (q *request) checkList(watch bool) error {
	o := internalversion.ListOptions{
		Watch: watch, ResourceVersion: q.query.Get("resourceVersion"), ResourceVersionMatch: metav1.ResourceVersionMatch(q.query.Get("resourceVersionMatch")),
		Continue: q.query.Get("continue"), AllowWatchBookmarks: truth(q.query, "allowWatchBookmarks"),
	}
	if q.query.Has("sendInitialEvents") {
		o.SendInitialEvents = new(truth(q.query, "sendInitialEvents"))
	}
	if errs := internalvalidation.ValidateListOptions(&o, true); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return nil
}

func (q *request) delete() (*answer, error) {
	o, err := q.deleteOptions()
	if err != nil {
		return nil, err
	}
	gone, err := q.server.o.Store.Delete(q.target, o)
	if err != nil {
		return nil, err
	}
	if !o.DryRun && q.server.o.AfterWrite != nil {
		q.server.o.AfterWrite()
	}
	if gone.Show {
		return ok(q.partial(gone.Object)), nil
	}
	meta, _ := gone.Object["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return ok(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: q.target.Name, Group: q.kind.Group, Kind: q.kind.Plural, UID: types.UID(uid)},
	}), nil
}

func (q *request) deleteCollection() (*answer, error) {
	o, err := q.deleteOptions()
	if err != nil {
		return nil, err
	}
	gone, err := q.server.o.Store.DeleteCollection(q.target, q.selection(), o)
	if err != nil {
		return nil, err
	}
	if !o.DryRun && q.server.o.AfterWrite != nil {
		q.server.o.AfterWrite()
	}
	return ok(q.listOf(gone, metav1.ListMeta{ResourceVersion: q.server.o.Store.Version()})), nil
}
