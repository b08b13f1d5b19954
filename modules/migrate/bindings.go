package migrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	programs "github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/modules/migrate/jq"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/schedule"
)

// binder makes the bindings of one hook.
type binder struct {
	*notes
	place   place
	custom  []customKind
	lambdas bool
	used    map[string]bool // names of bindings
	objects bool            // the old hook reads objects beside what filters give
	secrets []raw           // grants for Secrets that are watched
	watches []watchName     // those that were brought over
}

// watchName is a watch by the names that configs have for it.
type watchName struct{ old, group, name string }

// place says where a hook stands, on which the stages that it may have depend.
type place struct {
	module  string
	global  bool            // among the global hooks
	chart   bool            // in a module with a chart
	folder  string          // of the hook, in the module
	folders *goFolders      // for hooks in Go
	queues  map[string]bool // of the hooks of the module so far
}

// noChart is why a module has no stages of Helm.
const noChart = "there is no chart"

// refuses says why there is no such stage there; "" when there is.
func (p place) refuses(stage string) string {
	switch {
	case (stage == "before_helm" || stage == "after_helm") && p.global:
		return "it is for hooks of modules"
	case (stage == "before_helm" || stage == "after_helm") && !p.chart:
		return noChart
	case (stage == "before_all" || stage == "after_all") && !p.global:
		return "it is for global hooks"
	}
	return ""
}

// name returns a name that no other binding of the hook has.
func (b *binder) name(wanted, otherwise string) string {
	wanted = cmp.Or(wanted, otherwise)
	name := wanted
	for n := 2; b.used[name]; n++ {
		name = wanted + strconv.Itoa(n)
	}
	b.used[name] = true
	return name
}

// stages are the bindings that have an order alone.
func (b *binder) stages(c *config) (out []string) {
	for _, s := range []struct {
		order *float64
		name  string
		note  string
	}{
		{c.OnStartup, "startup", ""},
		{c.BeforeAll, "before_all", "beforeAll ran each time that addon-operator converged; before_all(each = True) runs at the start, and when the user's config of global values changes"},
		{c.AfterAll, "after_all", ""},
		{c.BeforeHelm, "before_helm", ""},
		{c.AfterHelm, "after_helm", ""},
		{c.BeforeDeleteHelm, "before_delete", ""},
		{c.AfterDeleteHelm, "after_delete", ""},
	} {
		if s.order == nil {
			continue
		}
		why := b.place.refuses(s.name)
		switch {
		case why == noChart && slices.ContainsFunc(out, func(text string) bool { return strings.HasPrefix(text, "startup(") }):
			b.add(Changed, "%s: %s; startup() runs the hook, and no later change of values does", s.name, why)
			continue
		case why == noChart: // addon-operator runs these hooks all the same
			b.add(Changed, "%s is startup(): %s, and no later change of values runs the hook", s.name, why)
			s.name = "startup"
		case why != "":
			b.add(Left, "%s: %s", s.name, why)
			continue
		}
		if s.note != "" {
			b.add(Changed, "%s", s.note)
		}
		order := int(math.Max(-1e9, math.Min(1e9, math.Round(*s.order))))
		if float64(order) != *s.order {
			b.add(Changed, "the order %v of %s is %d now: orders are integers", *s.order, s.name, order)
		}
		call := &call{name: s.name}
		if order != 0 {
			call.set("order", order)
		}
		switch s.name { // as near to the old stages as it gets
		case "after_helm":
			call.set("always", true)
		case "before_all":
			call.set("each", true)
		}
		out = append(out, call.text(8))
	}
	return out
}

// schedule is one schedule; false where the crontab cannot be brought over.
func (b *binder) schedule(s scheduled) (string, bool) {
	cron, zone := strings.TrimSpace(s.Crontab), ""
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if rest, is := strings.CutPrefix(cron, prefix); is {
			zone, cron, _ = strings.Cut(rest, " ")
		}
	}
	if _, err := schedule.Parse(cron); err != nil {
		b.add(Left, "a schedule: %v", err)
		return "", false
	}
	if strings.HasPrefix(cron, "@every") {
		b.add(Changed, "%q counted from the start; its ticks come at multiples of the period since 1970 now", cron)
	}
	call := &call{name: "schedule", args: []string{starlark(cron)}}
	call.set("name", b.name(s.Name, "schedule"))
	if zone != "" {
		call.set("timezone", zone)
	}
	return call.text(8), true
}

// watch is one watch; false where nothing says of which kind.
func (b *binder) watch(w watched) (string, bool) {
	if w.Kind == "" {
		b.add(Left, "the watch %q: its kind is not in the file; write k8s.watch(…) by hand", w.Name)
		return "", false
	}
	version, kind, how := resolveKind(w.APIVersion, w.Kind, b.custom)
	call := &call{name: "k8s.watch", args: []string{starlark(version), starlark(kind)}}
	name := b.name(w.Name, strings.ToLower(kind))
	call.set("name", name)
	switch how {
	case guessed:
		b.add(Left, "the watch %q: write the API version and the kind as in manifests; %q %q is a guess", name, version, kind)
	case spelled:
		b.add(Changed, "the watch %q: see that %s is the kind as manifests spell it; a kind that nobody serves has no objects", name, kind)
	}
	if n := w.Namespace; n != nil {
		if n.NameSelector != nil && len(n.NameSelector.MatchNames) > 0 {
			call.set("namespaces", n.NameSelector.MatchNames)
		}
		b.labels(call, "namespace_labels", n.LabelSelector)
	}
	if w.NameSelector != nil && len(w.NameSelector.MatchNames) > 0 {
		call.set("object_names", w.NameSelector.MatchNames)
	}
	b.labels(call, "labels", w.LabelSelector)
	if w.FieldSelector != nil {
		if fields := fieldText(w.FieldSelector); fields != "" {
			call.set("fields", fields)
		}
	}
	b.filter(call, name, w)
	b.triggers(call, name, w)
	b.watches = append(b.watches, watchName{w.Name, w.Group, name})
	if version == "v1" && kind == "Secret" {
		b.secrets = append(b.secrets, secretGrant(w))
	}
	return call.text(8), true
}

// triggers says which changes run the hook.
func (b *binder) triggers(call *call, name string, w watched) {
	events := w.Events
	if events == nil {
		events = w.WatchEvents
	}
	if events != nil && len(*events) < 3 {
		triggers := []string{}
		for _, e := range *events {
			switch strings.ToLower(e) {
			case "added", "add":
				triggers = append(triggers, "added")
			case "modified", "update":
				triggers = append(triggers, "modified")
			case "deleted", "delete":
				triggers = append(triggers, "deleted")
			default:
				b.add(Left, "the watch %q: %q is none of Added, Modified, Deleted", name, e)
			}
		}
		call.set("events", triggers)
	}
	if w.OnSynchronization.is(false) {
		call.set("sync", false)
	}
	if w.WaitForSync.is(false) && !w.OnSynchronization.is(false) {
		call.set("gate", false)
	}
	if w.Resync != "" {
		b.add(Changed, "the watch %q had resynchronizationPeriod, which is not needed", name)
	}
}

// filter brings the jq filter over.
func (b *binder) filter(call *call, name string, w watched) {
	filter := strings.TrimSpace(w.JQFilter)
	if filter == "" {
		return
	}
	if err := programs.Check(filter); err != nil {
		b.add(Left, "the filter of %q: %s", name, message.Line(err.Error()))
		return
	}
	lambda, err := jq.Lambda(filter)
	switch {
	case !b.lambdas:
		call.set("filter", filter)
	case err != nil:
		call.set("filter", filter)
		b.add(Changed, "the filter of %q stays jq: %v", name, err)
	default:
		call.set("filter", raw(lambda))
	}
	if !strings.HasPrefix(filter, "{") && !strings.HasPrefix(filter, "[") {
		b.add(Changed, "objects for which the filter of %q gives null are left out of the snapshot", name)
	}
	if b.objects && !w.KeepFullObjects.is(false) {
		call.set("keep", "both")
		b.add(Changed, "rows of the snapshot %q have .object and .result, which was filterResult", name)
	}
}

// options are those of the hook that shell-operator has in bindings, or in settings.
func (b *binder) options(call *call, c *config) {
	var queues []string
	allowed, all := 0, 0
	each := func(s common) {
		all++
		if s.AllowFailure {
			allowed++
		}
		if s.Queue != "" && s.Queue != "main" && !slices.Contains(queues, s.Queue) {
			queues = append(queues, s.Queue)
		}
	}
	for _, s := range c.Schedule {
		each(s.common)
	}
	for _, w := range c.Kubernetes {
		each(w.common)
	}
	switch {
	case len(queues) == 0:
	case !b.place.queues[queues[0]] && len(b.place.queues) >= generation.MaxQueues:
		b.add(Changed, "the queue %q is left out: the hooks of a module have at most %d, and those without one share the module's", queues[0], generation.MaxQueues)
	default:
		b.place.queues[queues[0]] = true
		call.set("queue", queues[0])
		b.add(Changed, "the queue %q is the hook's, for all its bindings, and no other module shares it", queues[0])
	}
	if len(queues) > 1 {
		b.add(Changed, "its bindings had the queues %s; a hook has one", strings.Join(queues, ", "))
	}
	if allowed > 0 {
		call.set("allow_failure", true)
		if allowed < all {
			b.add(Changed, "allowFailure stood at %d of %d bindings; it is the hook's now", allowed, all)
		}
	}
	if s := c.Settings; s != nil && s.MinInterval+s.MinPeriod != "" {
		call.set("min_interval", cmp.Or(s.MinInterval, s.MinPeriod))
		if burst, err := strconv.Atoi(fmt.Sprint(s.Burst)); err == nil && burst > 1 {
			call.set("burst", burst)
		}
	}
}
