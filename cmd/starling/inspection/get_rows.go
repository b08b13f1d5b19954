package inspection

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
)

func listModules(st status.Status, args []string) (*listing, error) {
	found, err := findModules(st.Modules, args)
	if err != nil {
		return nil, err
	}
	found = status.WithFailing(st.Hooks, found)
	l := newListing("module", found, status.PrintModules, func(m status.Module) string { return m.Name })
	l.notes = failing(st.Hooks, found)
	if len(args) == 1 {
		l.all = found[0]
	}
	return l, nil
}

// findModules returns the module of that name, or all without one.
func findModules(modules []status.Module, args []string) ([]status.Module, error) {
	var names []string
	found := meant(modules, args, func(m status.Module, name string) bool {
		names = append(names, m.Name)
		return m.Name == name
	})
	if len(args) == 1 && len(found) == 0 {
		return nil, notFound("module", args[0], names)
	}
	return found, nil
}

// failing tells of hooks that fail in modules that are ready nonetheless, as they have
// been released once.
func failing(hooks []status.Hook, modules []status.Module) (notes []string) {
	for _, m := range modules {
		n := 0
		for _, h := range hooks {
			if h.Module == m.Name && h.State == status.HookFailed {
				n++
			}
		}
		if n > 0 && m.State == status.ModuleReady {
			notes = append(notes, fmt.Sprintf("the last run of %s of module %s failed; see: starling get hooks %s", message.Count(n, "hook"), m.Name, m.Name))
		}
	}
	return notes
}

func listHooks(st status.Status, args []string) (*listing, error) {
	found, err := findHooks(st, args)
	if err != nil {
		return nil, err
	}
	return newListing("hook", found, status.PrintHooks, hookName), nil
}

// hookName tells hooks of all modules apart: two may have hooks that call themselves the same.
func hookName(h status.Hook) string {
	if strings.HasPrefix(h.ID, h.Module+"/") {
		return h.ID
	}
	return h.Module + "/" + h.ID
}

// meansHook says whether a name means a hook: its id, its module and the id, or an end of the id, as the function.
func meansHook(name, module, id string) bool {
	return name != "" && (name == id || name == module+"/"+id || strings.HasSuffix(id, "/"+name) || strings.HasSuffix(id, ":"+name))
}

// findHooks returns the hooks of that name (of several modules there may be some; MODULE/ID
// names one), or the hooks of the module of that name, which may have none; or all without one.
func findHooks(st status.Status, args []string) ([]status.Hook, error) {
	var names []string
	found := meant(st.Hooks, args, func(h status.Hook, name string) bool {
		names = append(names, h.ID, h.Module)
		return name == h.Module || meansHook(name, h.Module, h.ID)
	})
	if len(args) == 0 || len(found) > 0 {
		return found, nil
	}
	for _, m := range st.Modules {
		if m.Name == args[0] {
			return found, nil // it has none
		}
		names = append(names, m.Name)
	}
	return nil, notFound("hook", args[0], names)
}

// listReleases finds the release of a module, which may have none, or the one of that name.
func listReleases(st status.Status, args []string) (*listing, error) {
	releaseName := func(r status.ModuleRelease) string { return r.Namespace + "/" + r.Name }
	found := meant(status.Releases(st.Modules), args, func(r status.ModuleRelease, name string) bool {
		return name == r.Module || name == releaseName(r)
	})
	if len(found) == 0 {
		if _, err := findModules(st.Modules, args); err != nil {
			return nil, err
		}
	}
	return newListing("release", found, status.PrintReleases, releaseName), nil
}

// snapshots asks for those of a hook, or of all hooks of a module.
func (f *getFlags) snapshots(cmd *cobra.Command, args []string) (*listing, error) {
	st, err := f.ask(cmd)
	if err != nil {
		return nil, err
	}
	hooks, err := findHooks(st, given(args))
	if err != nil {
		return nil, err
	}
	client, err := f.Client(cmd)
	if err != nil {
		return nil, err
	}
	var all []status.Snapshot
	for _, h := range hooks {
		snapshots, err := client.Snapshots(cmd.Context(), h.ID)
		if err != nil {
			return nil, f.Instance.Explain(err)
		}
		all = append(all, snapshots...)
	}
	snapshotName := func(s status.Snapshot) string { return s.Hook + "/" + s.Binding }
	l := newListing("snapshot", all, status.PrintSnapshots, snapshotName)
	l.empty = "no snapshots: nothing is watched"
	if !st.Leader {
		l.notes = append(l.notes, instance.StandbyNote(st.Holder))
	}
	return l, nil
}

// queues asks for the queues, those of one module, or the one of MODULE/QUEUE.
func (f *getFlags) queues(cmd *cobra.Command, args []string) (*listing, error) {
	client, err := f.Client(cmd)
	if err != nil {
		return nil, err
	}
	queues, err := client.Queues(cmd.Context())
	if err != nil {
		return nil, f.Instance.Explain(err)
	}
	queueName := func(q status.Queue) string { return q.Module + "/" + q.Queue }
	var names []string
	args = given(args)
	found := meant(queues, args, func(q status.Queue, name string) bool {
		names = append(names, q.Module)
		return q.Module == name || queueName(q) == name
	})
	if len(args) == 1 && len(found) == 0 {
		return nil, notFound("queue", args[0], names)
	}
	l := newListing("queue", found, status.PrintQueues, queueName)
	l.idle = func(i int) bool { return found[i].Length == 0 && len(found[i].Running) == 0 }
	l.empty = "nothing waits"
	l.notes = instance.Standing(cmd, client)
	return l, nil
}

// replicas lists them, with a note when the one of this machine stands by.
func (f *getFlags) replicas(cmd *cobra.Command, _ []string) (*listing, error) {
	found, err := f.Target.Replicas(cmd)
	if err != nil {
		return nil, err
	}
	l := newListing("replica", found, status.PrintReplicas, func(r status.Replica) string { return r.Name })
	if !f.Remote() && !found[0].Leader {
		l.notes = append(l.notes, instance.StandbyNote(found[0].Holder))
	}
	return l, nil
}
