package values

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// GlobalKey is the key of the global values: in the views of hooks and charts,
// in the tree's values.yaml and in the user's config.
const GlobalKey = "global"

// EnabledModules is the key below "global" of the names of the modules that are on, in their order.
const EnabledModules = "enabledModules"

// enabledSuffix ends the name of a module's switch.
const enabledSuffix = "Enabled"

// EnabledKey returns the name of the switch of the module with this key:
// "ingressNginx" gives "ingressNginxEnabled".
func EnabledKey(key string) string { return key + enabledSuffix }

const (
	driftSuffix       = "Drift"
	pausedSuffix      = "Paused"
	maintenanceSuffix = "Maintenance"
)

// PolicyKeys are the keys of the user's ConfigMap that say what becomes of the release of the
// module with this key: "ingressNginxDrift", then those that pause it: "ingressNginxPaused", and
// "ingressNginxMaintenance", which addon-operator reads, too.
func PolicyKeys(key string) []string {
	return []string{key + driftSuffix, key + pausedSuffix, key + maintenanceSuffix}
}

// ModuleView returns what a module's hooks and its chart see: the module's
// values at the root, the global ones under "global". The values of the chart itself
// under "global" lie below the global values, as in Helm.
func ModuleView(module, global map[string]any) map[string]any {
	out := make(map[string]any, len(module)+1)
	maps.Copy(out, module)
	own, _ := module[GlobalKey].(map[string]any)
	out[GlobalKey] = Merge(own, global)
	return out
}

// GlobalView returns what global hooks see: the global values under "global",
// and the switches, by their full names. Later switches win.
func GlobalView(global map[string]any, switches ...map[string]bool) map[string]any {
	out := map[string]any{}
	for _, s := range switches {
		for name, on := range s {
			out[name] = on
		}
	}
	if global == nil {
		global = map[string]any{}
	}
	out[GlobalKey] = global
	return out
}

// SplitGlobal takes the operations of a global hook apart: those on global
// values, with the key "global" stripped from their paths, and the switches that
// it sets, by their full names ("fooEnabled"). It fails on any other path and on
// a switch that is neither true nor false.
func SplitGlobal(ops []effect.ValueOp) (global []effect.ValueOp, switches map[string]bool, err error) {
	switches = map[string]bool{}
	var upper []effect.ValueOp
	for _, op := range rootMerges(ops) {
		switch {
		case len(op.Path) == 0:
			return nil, nil, globalError(op, "the values as a whole cannot be replaced")
		case op.Path[0] == GlobalKey:
			op.Path = op.Path[1:]
			global = append(global, op)
		case len(op.Path) > 1 || !strings.HasSuffix(op.Path[0], enabledSuffix):
			return nil, nil, globalError(op, "global hooks write below global and switches such as fooEnabled")
		default:
			upper = append(upper, op)
		}
	}
	// A default never overrides what the same hook sets.
	slices.SortStableFunc(upper, func(a, b effect.ValueOp) int { return rank(a) - rank(b) })
	for _, op := range upper {
		name := op.Path[0]
		if op.Op == effect.OpRemove {
			delete(switches, name)
			continue
		}
		on, ok := op.Value.(bool)
		if !ok {
			return nil, nil, globalError(op, "a switch is True or False")
		}
		switches[name] = on
	}
	return global, switches, nil
}

// SwitchOps are the operations of a global hook on switches, see [SplitGlobal].
func SwitchOps(ops []effect.ValueOp) []effect.ValueOp {
	return slices.DeleteFunc(rootMerges(ops), func(op effect.ValueOp) bool { return len(op.Path) == 0 || op.Path[0] == GlobalKey })
}

// rootMerges takes merges at the root apart, one for each key.
func rootMerges(ops []effect.ValueOp) []effect.ValueOp {
	var out []effect.ValueOp
	for _, op := range ops {
		m, isMap := op.Value.(map[string]any)
		if op.Op != effect.OpMerge || len(op.Path) > 0 || !isMap {
			out = append(out, op)
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			one := effect.ValueOp{Op: effect.OpSet, Path: []string{k}, Value: m[k], Pos: op.Pos, Secrets: marksIn(op.Secrets, []string{k})}
			switch m[k].(type) {
			case nil:
				one.Op = effect.OpRemove
			case map[string]any:
				one.Op = effect.OpMerge
			}
			out = append(out, one)
		}
	}
	return out
}

func rank(op effect.ValueOp) int {
	if op.Op == effect.OpDefault {
		return 0
	}
	return 1
}

func globalError(op effect.ValueOp, why string) error {
	msg := fmt.Sprintf("values path %q: %s", PathString(op.Path), why)
	if op.Pos != "" {
		msg = op.Pos + ": " + msg
	}
	return errors.New(msg)
}
