package docs

import (
	"slices"
	"strings"
)

// CtxField is one field of ctx, or of what one of its fields holds.
type CtxField struct {
	// Path is how docs write it: "ctx.module.name", "ctx.events[].type" for each of a list, "ctx.reads.NAME.get"
	// for each name of a controller's reads=.
	Path string
	// Type is the type of its value, in words for people.
	Type string
	// Doc says what it is, in a sentence.
	Doc string
	// Example is such a value, as Starlark writes it; empty for what cannot be written.
	Example string
	// In are the names of the [Callback]s in which it is there, and not None.
	In []string
	// Sometimes says that it may be missing, or None, even so.
	Sometimes bool
}

// CtxFields returns all fields of ctx: those of hooks, then those that functions of controllers alone have. A field
// of both stands there twice, as it need not be the same.
func CtxFields() []CtxField {
	var hooks, controllers []string
	for _, c := range Callbacks() {
		switch {
		case c.Hook():
			hooks = append(hooks, c.Name)
		case c.Ctx():
			controllers = append(controllers, c.Name)
		}
	}
	return slices.Concat(hookFields(hooks), controllerFields(controllers))
}

// CtxFieldsOf returns the fields that the ctx of one [Callback] has.
func CtxFieldsOf(callback string) []CtxField {
	return slices.DeleteFunc(CtxFields(), func(f CtxField) bool { return !slices.Contains(f.In, callback) })
}

// CtxMembers returns the fields one level below a path in the ctx of a callback, for completion: of "ctx", of
// "ctx.events[]", of "ctx.request". Callback "" has those of all hooks.
func CtxMembers(callback, path string) []CtxField {
	return slices.DeleteFunc(CtxFields(), func(f CtxField) bool {
		name, below := strings.CutPrefix(f.Path, path+".")
		is := slices.Contains(f.In, callback) || callback == "" && f.hooks()
		return !is || !below || strings.Contains(name, ".")
	})
}

// hookFields are those of a hook's ctx, in the order in which people need them.
func hookFields(all []string) []CtxField {
	each, changes := []string{onEach, onCleanup}, []string{onWatch, onEach, onCleanup}
	return slices.Concat([]CtxField{
		{Path: "ctx.snapshots", Type: "dict of lists", In: all, Example: `{"nodes": [{"name": "a", "ready": True}]}`,
			Doc: "By the name of each watch of the hook, the list of all its results, sorted by namespace and name. It is there in each run, whatever has triggered it. dict(ctx.snapshots) has the methods of a dict."},
		{Path: "ctx.key", Type: "string", In: each, Example: `"web/shop"`,
			Doc: "With for_each, \"namespace/name\" (or \"name\", of a kind without namespaces) of the object that the run is about; else None."},
		{Path: "ctx.object", Type: "any", In: each, Example: `{"name": "shop", "replicas": 2}`,
			Doc: "With for_each, the result of the filter for the object that the run is about: the whole object when there is no filter, or with keep=\"object\"; else None. With keep=\"both\" it has .object and .result."},
		{Path: "ctx.events", Type: "list", In: all, Example: `[struct(type = "startup", binding = "startup")]`,
			Doc: "The reasons for the run, in order. They are hints: one run may stand for many events, and one event may come twice. So look into ctx.snapshots for what is there."},
		{Path: "ctx.events[].type", Type: "string", In: all, Example: `"modified"`,
			Doc: "\"startup\", \"schedule\", \"sync\" (a watch has seen all there are), \"added\", \"modified\", \"deleted\", \"requeue\", \"request\", \"helm\", \"delete\" or \"all\"."},
		{Path: "ctx.events[].binding", Type: "string", In: all, Example: `"nodes"`,
			Doc: "The name of the trigger: name= of k8s.watch and the like; without it the kind in lower case, \"schedule\", \"before_helm\"."},
		{Path: "ctx.events[].namespace", Type: "string", In: changes, Sometimes: true, Example: `"web"`,
			Doc: "Of added, modified and deleted: the namespace of the object, \"\" for a kind without namespaces."},
		{Path: "ctx.events[].name", Type: "string", In: changes, Sometimes: true, Example: `"shop"`,
			Doc: "Of added, modified and deleted: the name of the object."},
		{Path: "ctx.events[].result", Type: "any", In: changes, Sometimes: true, Example: `{"name": "shop", "replicas": 2}`,
			Doc: "Of added, modified and deleted: the result of the filter, of a deleted object the last one. None where it is not known."},
		{Path: "ctx.events[].object", Type: "object", In: changes, Sometimes: true, Example: `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}`,
			Doc: "Of added, modified and deleted, with keep=\"object\" or \"both\" of the watch: the whole object."},
		{Path: "ctx.events[].old", Type: "any", In: changes, Sometimes: true, Example: `{"name": "shop", "replicas": 1}`,
			Doc: "Of modified: with old=True of the watch the .result of before, None when it is not known; else None."},
		{Path: "ctx.module", Type: "struct", In: all, Example: `struct(name = "web", namespace = "web", release = "web")`,
			Doc: "The module of the hook."},
		{Path: "ctx.module.name", Type: "string", In: all, Example: `"web"`, Doc: "Its name; \"global\" for global hooks."},
		{Path: "ctx.module.namespace", Type: "string", In: all, Example: `"web"`, Doc: "The namespace of its release; of a global hook that of Starling."},
		{Path: "ctx.module.release", Type: "string", In: all, Example: `"web"`, Doc: "The name of its Helm release; \"\" for global hooks."},
		{Path: "ctx.now", Type: "time", In: all, Example: `time.parse_time("2026-01-31T12:00:00Z")`, Doc: "The time of the run, as time.now()."},
		{Path: "ctx.attempt", Type: "int", In: all, Example: "1", Doc: "The number of this try, from 1: a run that fails is tried again."},
		{Path: "ctx.state", Type: "namespace", In: all, Doc: "The memory of the hook, with for_each of the object: ctx.state.get, ctx.state.set and ctx.state.remove."},
		{Path: "ctx.synced", Type: "dict of bools", In: all, Example: `{"nodes": True}`,
			Doc: "By the name of each watch, whether the API server serves its kind; if not, the snapshot is empty."},
		{Path: "ctx.request", Type: "request", In: []string{onValidate, onMutate, onReceive},
			Doc: "The request that the run answers; None in any other run."},
	}, reviewFields([]string{onValidate, onMutate}), receivedFields([]string{onReceive}))
}

// reviewFields are those of a request of the API server.
func reviewFields(in []string) []CtxField {
	const later = " It is read as the hook looks at it."
	return []CtxField{
		{Path: "ctx.request.operation", Type: "string", In: in, Example: `"UPDATE"`, Doc: "CREATE, UPDATE, DELETE or CONNECT."},
		{Path: "ctx.request.object", Type: "object", In: in, Sometimes: true, Example: `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}}`,
			Doc: "The object as it will be; None for DELETE."},
		{Path: "ctx.request.old_object", Type: "object", In: in, Sometimes: true, Example: `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}}`,
			Doc: "The object as it is; None for CREATE." + later},
		{Path: "ctx.request.namespace", Type: "string", In: in, Example: `"web"`, Doc: "The namespace of the object, or \"\"."},
		{Path: "ctx.request.name", Type: "string", In: in, Example: `"shop"`, Doc: "The name of the object; \"\" when the API server makes it up."},
		{Path: "ctx.request.user", Type: "struct", In: in, Example: `struct(name = "ann", uid = "", groups = ["dev"], extra = {})`, Doc: "The one who makes the change."},
		{Path: "ctx.request.user.name", Type: "string", In: in, Example: `"ann"`, Doc: "The name of the user, of a service account \"system:serviceaccount:NAMESPACE:NAME\"."},
		{Path: "ctx.request.user.uid", Type: "string", In: in, Example: `""`, Doc: "The UID of the user, where there is one."},
		{Path: "ctx.request.user.groups", Type: "list of strings", In: in, Example: `["dev", "system:authenticated"]`, Doc: "The groups of the user."},
		{Path: "ctx.request.user.extra", Type: "dict of lists", In: in, Example: `{}`, Doc: "More that is known of the user, as lists of strings."},
		{Path: "ctx.request.api_version", Type: "string", In: in, Example: `"v1"`, Doc: "The API version of the object."},
		{Path: "ctx.request.kind", Type: "string", In: in, Example: `"Service"`, Doc: "The kind of the object."},
		{Path: "ctx.request.resource", Type: "string", In: in, Example: `"services"`, Doc: "The resource, as in URLs."},
		{Path: "ctx.request.resource_api_version", Type: "string", In: in, Example: `"v1"`, Doc: "The API version of the resource. It differs from that of the object for subresources as scale."},
		{Path: "ctx.request.subresource", Type: "string", In: in, Example: `""`, Doc: "\"status\", \"scale\" and the like; \"\" for the object itself."},
		{Path: "ctx.request.request_api_version", Type: "string", In: in, Example: `"v1"`, Doc: "As the client has asked: the API version of the object. It may be another one, which the API server has converted for the hook."},
		{Path: "ctx.request.request_kind", Type: "string", In: in, Example: `"Service"`, Doc: "As the client has asked: the kind."},
		{Path: "ctx.request.request_resource", Type: "string", In: in, Example: `"services"`, Doc: "As the client has asked: the resource."},
		{Path: "ctx.request.request_resource_api_version", Type: "string", In: in, Example: `"v1"`, Doc: "As the client has asked: the API version of the resource."},
		{Path: "ctx.request.request_subresource", Type: "string", In: in, Example: `""`, Doc: "As the client has asked: the subresource."},
		{Path: "ctx.request.dry_run", Type: "bool", In: in, Example: "False", Doc: "Whether nothing will be kept of the change."},
		{Path: "ctx.request.uid", Type: "string", In: in, Example: `"705ab4f5"`, Doc: "The id of the request."},
		{Path: "ctx.request.options", Type: "object", In: in, Sometimes: true, Example: `{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}`,
			Doc: "The options of the client, or None." + later},
	}
}

// receivedFields are those of a request to http.receive.
func receivedFields(in []string) []CtxField {
	return []CtxField{
		{Path: "ctx.request.method", Type: "string", In: in, Example: `"POST"`, Doc: "GET, POST, PUT, PATCH or DELETE."},
		{Path: "ctx.request.path", Type: "string", In: in, Example: `"/github"`, Doc: "The path of the URL."},
		{Path: "ctx.request.query", Type: "dict of strings", In: in, Example: `{"dry": "1"}`, Doc: "The parameters of the URL; of several values the first."},
		{Path: "ctx.request.headers", Type: "dict of strings", In: in, Example: `{"content-type": "application/json"}`, Doc: "The headers, by name in lower case; those that hold secrets are left out."},
		{Path: "ctx.request.body", Type: "string", In: in, Example: `"{\"action\": \"opened\"}"`, Doc: "The body as text."},
		{Path: "ctx.request.json", Type: "any", In: in, Sometimes: true, Example: `{"action": "opened"}`, Doc: "The content of the body; None when it is no JSON."},
	}
}

// controllerFields are those that the functions of a controller see.
func controllerFields(all []string) []CtxField {
	return []CtxField{
		{Path: "ctx.key", Type: "string", In: all, Example: `"team-a/shop"`, Doc: "\"namespace/name\" (or \"name\", of a kind without namespaces) of the parent."},
		{Path: "ctx.object", Type: "object", In: all, Example: `{"kind": "App", "metadata": {"name": "shop"}}`, Doc: "The parent, as the second argument has it."},
		{Path: "ctx.children", Type: "list", In: all, Doc: "The children that there are, sorted by kind, namespace and name. Objects of which the controller only sets fields are not among them.",
			Example: `[struct(kind = "Deployment", namespace = "team-a", name = "shop", ready = True, reason = "", deleting = False)]`},
		{Path: "ctx.children[].kind", Type: "string", In: all, Example: `"Deployment"`, Doc: "Its kind."},
		{Path: "ctx.children[].namespace", Type: "string", In: all, Example: `"team-a"`, Doc: "Its namespace, or \"\"."},
		{Path: "ctx.children[].name", Type: "string", In: all, Example: `"shop"`, Doc: "Its name."},
		{Path: "ctx.children[].ready", Type: "bool", In: all, Example: "True", Doc: "Whether it is ready, by its status."},
		{Path: "ctx.children[].reason", Type: "string", In: all, Example: `"0 of 2 replicas are ready"`, Doc: "Why it is not ready; \"\" when it is."},
		{Path: "ctx.children[].deleting", Type: "bool", In: all, Example: "False", Doc: "Whether it is being deleted."},
		{Path: "ctx.reads", Type: "reads", In: all, Doc: "The other objects that the controller looks at, by their names in reads=."},
		{Path: "ctx.reads.NAME.get", Type: "function", In: all, Doc: "get(\"namespace/name\") returns the row of that object, the result of the filter, or None."},
		{Path: "ctx.reads.NAME.by", Type: "function", In: all, Doc: "by(index, value) returns a list of the rows that an index= of the watch finds."},
		{Path: "ctx.reads.NAME.all", Type: "function", In: all, Doc: "all() returns a list of all rows, sorted by namespace and name."},
		{Path: "ctx.observed", Type: "any", In: all, Sometimes: true,
			Example: `{"members": ["a", "b"]}`, Doc: "The last answer of observe=; None before the first one."},
		{Path: "ctx.observed_at", Type: "time", In: all, Sometimes: true,
			Example: `time.parse_time("2026-01-31T12:00:00Z")`, Doc: "The time of that answer, or None."},
		{Path: "ctx.reached", Type: "function", In: all,
			Doc: "reached(t) says whether a time has come: a time, or text as metadata.creationTimestamp has it. If not, the function is called again then."},
	}
}
