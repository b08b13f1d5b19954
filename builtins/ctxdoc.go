package builtins

import (
	"fmt"
	"strings"
)

// ctxDocs say what a hook finds in its ctx, by name.
var ctxDocs = [...]struct{ name, typ, doc string }{
	{"attempt", "int", "The number of this try, from 1: a run that fails is tried again."},
	{"events", "list", "The reasons for the run, in order; hints, as one run may stand for many events, and one event may come twice. Each has .type and .binding. .type is startup, schedule, sync, added, modified, deleted, requeue, helm, delete or all; added, modified and deleted have .namespace, .name and .result, too, and .object where the watch has keep=\"object\" or \"both\"; modified has .old, with old=True what .result was before, else None."},
	{"key", "string or None", "With for_each, \"namespace/name\" (or \"name\") of the object that the run is about."},
	{"module", "struct", "The module: .name, .namespace and .release."},
	{"now", "time", "The time of the run, as time.now()."},
	{"object", "any", "With for_each, the result of the filter for the object that the run is about, or with keep=\"object\" the object itself; else None."},
	{"request", "struct or None", "The request that the run answers: see k8s.validate, k8s.mutate and http.receive. None in any other run."},
	{"snapshots", "dict", "By the name of each watch, the list of all its results, sorted by namespace and name."},
	{"state", "", "The memory of the hook: ctx.state.get, ctx.state.set and ctx.state.remove."},
	{"synced", "dict", "By the name of each watch, whether the API server serves its kind; if not, the snapshot is empty."},
}

// writeCtx writes the part of the reference about ctx.
func writeCtx(b *strings.Builder) {
	b.WriteString("\n## `ctx`\n\n" + lines("The argument of a hook. All of it is frozen, and it has nothing else. In a test, t.runs shows what runs did.") + "\n\n| field | type | |\n|---|---|---|\n")
	for _, f := range ctxDocs {
		fmt.Fprintf(b, "| `ctx.%s` | %s | %s |\n", f.name, cell(f.typ), cell(f.doc))
	}
}
