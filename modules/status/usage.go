package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Usage is what the runs of a hook have taken, those that have failed included.
type Usage struct {
	// Runs counts those that have ended: of a hook that is asked, the answers too.
	Runs uint64 `json:"runs"`
	// Time is that of all runs together, commits aside, Longest that of the longest one. Waiting for
	// the API server and for others counts.
	Time    Duration `json:"time,omitzero"`
	Longest Duration `json:"longest,omitzero"`
	// Steps are those of Starlark, MostSteps those of the run with the most.
	Steps     uint64 `json:"steps,omitempty"`
	MostSteps uint64 `json:"mostSteps,omitempty"`
	// Memory is how many bytes the snapshots of the hook's watches take now, about; what several
	// hooks share counts for each.
	Memory int64 `json:"memory,omitempty"`
}

// Add counts a run that has taken so long and so many steps.
func (u *Usage) Add(took time.Duration, steps uint64) {
	u.Runs++
	u.Time += Duration(took)
	u.Longest = max(u.Longest, Duration(took))
	u.Steps += steps
	u.MostSteps = max(u.MostSteps, steps)
}

// Since returns what was taken after another usage was; a process that has started anew meanwhile
// has taken all. Longest, MostSteps and Memory stay as they are.
func (u Usage) Since(before Usage) Usage {
	if u.Runs < before.Runs {
		return u
	}
	u.Runs -= before.Runs
	u.Time -= before.Time
	u.Steps -= before.Steps
	return u
}

type HookUsage struct {
	Module string `json:"module"`
	Hook   string `json:"hook"`
	Usage
}

// Orders are what hooks are sorted by, see [SortUsage].
func Orders() []string { return []string{"time", "steps", "runs", "memory"} }

// SortUsage puts hooks in order, the one that has taken the most first, by one of [Orders].
func SortUsage(hooks []HookUsage, by string) {
	much := func(u HookUsage) int64 {
		switch by {
		case "steps":
			return int64(u.Steps)
		case "runs":
			return int64(u.Runs)
		case "memory":
			return u.Memory
		}
		return int64(u.Time)
	}
	slices.SortStableFunc(hooks, func(a, b HookUsage) int {
		return cmp.Or(cmp.Compare(much(b), much(a)), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Hook, b.Hook))
	})
}

// PrintUsage writes a table of hooks: MODULE HOOK RUNS TIME LONGEST STEPS MEMORY.
func PrintUsage(w io.Writer, hooks []HookUsage, o Options) error {
	t := table{{"MODULE", "HOOK", "RUNS", "TIME", "LONGEST", "STEPS", "MEMORY"}}
	for _, h := range hooks {
		t = append(t, []string{h.Module, line(h.Hook), strconv.FormatUint(h.Runs, 10), Roughly(time.Duration(h.Time)), Roughly(time.Duration(h.Longest)),
			strconv.FormatUint(h.Steps, 10), size(h.Memory)})
	}
	return t.write(w, -1, o)
}

// size writes a number of bytes with the precision that people read.
func size(bytes int64) string {
	switch {
	case bytes >= 10<<20:
		return fmt.Sprintf("%dMi", bytes>>20)
	case bytes >= 10<<10:
		return fmt.Sprintf("%dKi", bytes>>10)
	}
	return strconv.FormatInt(bytes, 10)
}
