package rest

import (
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/sim/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// request is a request for objects.
type request struct {
	server *Server
	http   *http.Request
	query  url.Values
	kind   store.Kind
	target store.Target
}

// object answers requests for objects; parts is the path behind the version.
func (s *Server) object(r *http.Request, gv schema.GroupVersion, parts []string) (*answer, error) {
	q := &request{server: s, http: r, query: r.URL.Query()}
	inNamespace := false
	// namespaces/NAME and namespaces/NAME/status are Namespaces themselves.
	if parts[0] == "namespaces" && len(parts) > 2 && !(gv.Group == "" && len(parts) == 3 && parts[2] == "status") {
		inNamespace = true
		q.target.Namespace, parts = parts[1], parts[2:]
	}
	q.target.GVR = gv.WithResource(parts[0])
	if len(parts) > 1 {
		q.target.Name = parts[1]
	}
	if len(parts) > 2 {
		q.target.Subresource = parts[2]
	}
	if len(parts) > 3 || len(parts) > 1 && parts[1] == "" || inNamespace && q.target.Namespace == "" {
		return nowhere(), nil
	}
	var known bool
	if q.kind, known = s.o.Store.Kind(q.target.GVR); !known {
		return nil, s.unknown(gv)
	}
	if inNamespace && !q.kind.Namespaced {
		return nil, s.unknown(gv)
	}
	if q.kind.Namespaced && !inNamespace && (q.target.Name != "" || r.Method == http.MethodPost || r.Method == http.MethodDelete) {
		if q.target.Name != "" {
			return nowhere(), nil
		}
		return nil, unsupported(q.target.GVR.GroupResource(), r)
	}
	return q.dispatch()
}

// unknown is the answer to a resource that is not served: a Status where built-in
// kinds live, and just a text elsewhere.
func (s *Server) unknown(gv schema.GroupVersion) error {
	for _, k := range s.o.Store.Kinds() {
		if k.Builtin && k.GVK().GroupVersion() == gv {
			_, err := s.o.Store.Get(store.Target{GVR: gv.WithResource("")})
			return err
		}
	}
	return errNowhere
}

// verb is what a request wants to do; "" for a method that its path does not take.
func (q *request) verb() string {
	named := q.target.Name != ""
	switch method := q.http.Method; {
	case method == http.MethodGet && named:
		return "get"
	case method == http.MethodGet && truth(q.query, "watch"):
		return "watch"
	case method == http.MethodGet:
		return "list"
	case method == http.MethodPost && (!named || q.target.Subresource != ""):
		return "create"
	case method == http.MethodPut && named:
		return "update"
	case method == http.MethodPatch && named:
		return "patch"
	case method == http.MethodDelete && named:
		return "delete"
	case method == http.MethodDelete:
		return "deletecollection"
	}
	return ""
}

func (q *request) dispatch() (*answer, error) {
	verb := q.verb()
	if q.target.Subresource == "" && !slices.Contains(q.kind.Verbs(), verb) {
		return nil, unsupported(q.target.GVR.GroupResource(), q.http)
	}
	switch verb {
	case "get":
		obj, err := q.server.o.Store.Get(q.target)
		if err != nil {
			return nil, err
		}
		if q.kind.Builtin && q.target.Subresource != "scale" && !q.metadataOnly() {
			return q.server.read.whole(obj), nil
		}
		return ok(q.partial(obj)), nil
	case "watch":
		return q.watch()
	case "list":
		return q.list()
	case "create":
		return q.create()
	case "update":
		return q.update()
	case "patch":
		return q.patch()
	case "delete":
		return q.delete()
	case "deletecollection":
		return q.deleteCollection()
	}
	return nil, unsupported(q.target.GVR.GroupResource(), q.http)
}

// truth reads a yes or no of the query as the real server does: what is no "false" and
// no "0" is a yes, and so is a name without a value.
func truth(q url.Values, name string) bool {
	return q.Has(name) && q.Get(name) != "0" && !strings.EqualFold(q.Get(name), "false")
}

// read returns the body, as JSON.
func (q *request) read() ([]byte, error) {
	if q.http.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(q.http.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest("the body of the request cannot be read")
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// decode reads an object, and what a strict reader would not have taken.
func (q *request) decode() (obj map[string]any, strict []string, err error) {
	body, err := q.read()
	if err != nil {
		return nil, nil, err
	}
	typ, _, _ := mime.ParseMediaType(q.http.Header.Get("Content-Type"))
	switch typ {
	case "", jsonType, "text/plain":
	case "application/yaml":
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error converting YAML to JSON: %v", err))
		}
	case protobufType:
		obj, err := q.decodeProtobuf(body)
		return obj, nil, err
	default:
		err := apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "", "", 0, false)
		err.ErrStatus.Details = nil
		err.ErrStatus.Message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, " + protobufType
		return nil, nil, err
	}
	errs, err := kjson.UnmarshalStrict(body, &obj)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): couldn't get version/kind; json parse error: %v (%s)", q.kind.Kind, err, excerpt(body)))
	}
	for _, e := range errs {
		strict = append(strict, e.Error())
	}
	return obj, strict, nil
}

// excerpt shows the beginning of a body.
func excerpt(body []byte) string {
	const limit = 1024
	return strings.ToValidUTF8(string(body[:min(len(body), limit)]), "?")
}

// options reads what a write may say.
func (q *request) options() (store.WriteOptions, error) {
	o := store.WriteOptions{Manager: q.query.Get("fieldManager"), Force: truth(q.query, "force"), FieldValidation: q.query.Get("fieldValidation")}
	for _, v := range q.query["dryRun"] {
		if v != metav1.DryRunAll {
			return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "CreateOptions"}, "", field.ErrorList{
				field.NotSupported(field.NewPath("dryRun"), []string{v}, []string{metav1.DryRunAll})})
		}
		o.DryRun = true
	}
	switch o.FieldValidation {
	case "", "Ignore", "Warn", "Strict":
	default:
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "CreateOptions"}, "", field.ErrorList{
			field.NotSupported(field.NewPath("fieldValidation"), o.FieldValidation, []string{"", "Ignore", "Strict", "Warn"})})
	}
	if len(o.Manager) > 128 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "CreateOptions"}, "", field.ErrorList{
			field.TooLong(field.NewPath("fieldManager"), o.Manager, 128)})
	}
	return o, nil
}

// agent is the field manager of writes that name none.
func agent(r *http.Request) string {
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name[:min(len(name), 128)]
}

// written makes the answer to a write, once the options and the body were read.
func (q *request) written(res store.Result, strict []string, err error, dryRun bool) (*answer, error) {
	if err != nil {
		return nil, err
	}
	if !dryRun && q.server.o.AfterWrite != nil {
		q.server.o.AfterWrite()
	}
	a := ok(q.partial(res.Object))
	if res.Created {
		a.code = http.StatusCreated
	}
	if q.query.Get("fieldValidation") != "Ignore" {
		a.warnings = append(strict, res.Warnings...)
	}
	return a, nil
}

// body reads options and object of a write, and refuses what strict validation
// does.
func (q *request) body() (store.WriteOptions, map[string]any, []string, error) {
	o, err := q.options()
	if err != nil {
		return o, nil, nil, err
	}
	if o.Manager == "" {
		o.Manager = agent(q.http)
	}
	obj, strict, err := q.decode()
	if err == nil && len(strict) > 0 && o.FieldValidation == "Strict" {
		err = apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s", q.kind.Kind, q.kind.Version, q.kind.Kind, strings.Join(strict, ", ")))
	}
	return o, obj, strict, err
}

func (q *request) create() (*answer, error) { return q.write(q.server.o.Store.Create) }
func (q *request) update() (*answer, error) { return q.write(q.server.o.Store.Update) }

// write has the store take the object of the body.
func (q *request) write(
	take func(store.Target, map[string]any, store.WriteOptions) (store.Result, error),
) (*answer, error) {
	o, obj, strict, err := q.body()
	if err != nil {
		return nil, err
	}
	res, err := take(q.target, obj, o)
	return q.written(res, strict, err, o.DryRun)
}

func (q *request) patch() (*answer, error) {
	o, err := q.options()
	if err != nil {
		return nil, err
	}
	data, err := q.read()
	if err != nil {
		return nil, err
	}
	typ, _, _ := mime.ParseMediaType(q.http.Header.Get("Content-Type"))
	switch types.PatchType(typ) {
	case types.ApplyPatchType:
	case types.MergePatchType, types.JSONPatchType, types.StrategicMergePatchType:
		if o.Force {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", field.ErrorList{
				field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
		}
		if o.Manager == "" {
			o.Manager = agent(q.http)
		}
	default:
		err := apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "", "", 0, false)
		err.ErrStatus.Details, err.ErrStatus.Message = &metav1.StatusDetails{}, "415: Unsupported Media Type"
		return nil, err
	}
	res, err := q.server.o.Store.Patch(q.target, types.PatchType(typ), data, o)
	return q.written(res, nil, err, o.DryRun)
}

// partial leaves the metadata only, for clients that ask for no more.
func (q *request) partial(obj map[string]any) map[string]any {
	if !q.metadataOnly() || obj["kind"] == "Status" {
		return obj
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj["metadata"]}
}

func (q *request) metadataOnly() bool {
	return strings.Contains(q.http.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func (q *request) list() (*answer, error) {
	if err := q.checkList(false); err != nil {
		return nil, err
	}
	o := store.ListOptions{
		Selection: q.selection(), Continue: q.query.Get("continue"),
		Version: q.query.Get("resourceVersion"), Match: metav1.ResourceVersionMatch(q.query.Get("resourceVersionMatch")),
	}
	var err error
	if o.Limit, err = number(q.query, "limit"); err != nil {
		return nil, err
	}
	found, err := q.server.o.Store.List(q.target, o)
	if err != nil {
		return nil, err
	}
	meta := metav1.ListMeta{ResourceVersion: found.Version, Continue: found.Continue, RemainingItemCount: found.Remaining}
	return ok(q.listOf(found.Items, meta)), nil
}

// listOf makes a list object. The items of built-in kinds do not say what they are.
func (q *request) listOf(objects []map[string]any, meta metav1.ListMeta) map[string]any {
	apiVersion, kind := q.kind.APIVersion(), q.kind.ListKind()
	items := make([]any, len(objects))
	partial := false
	for i, obj := range objects {
		shown := q.partial(obj)
		partial = shown["kind"] == "PartialObjectMetadata"
		if q.kind.Builtin && !partial {
			shown = maps.Clone(shown)
			delete(shown, "apiVersion")
			delete(shown, "kind")
		}
		items[i] = shown
	}
	if partial || strings.Contains(q.http.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta, "items": items}
	if !q.kind.Builtin && meta.Continue == "" {
		out["metadata"] = map[string]any{"resourceVersion": meta.ResourceVersion, "continue": ""}
	}
	return out
}

func (q *request) selection() store.Selection {
	return store.Selection{Labels: q.query.Get("labelSelector"), Fields: q.query.Get("fieldSelector")}
}
