package record

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
)

// Format is the version of the files. A record of another one cannot be read.
const Format = 1

// Results of a run.
const (
	ResultOK     = "ok"
	ResultFailed = "failed"
)

// Header is what is known of a run without the key. It names things and holds nothing
// of what is in them.
type Header struct {
	// Format is that of the file; see [Format].
	Format int `json:"format"`
	// ID is "<process>-<number>".
	ID string `json:"id"`
	// Version is that of the starling that ran it.
	Version string `json:"version"`
	// Module is the module's name, Hook the hook's id ("web/hooks/nodes.star:f"), Key
	// the object that the run was about, with for_each.
	Module string `json:"module"`
	Hook   string `json:"hook"`
	Key    string `json:"key,omitempty"`
	// Cause says what triggered it: "startup", "nodes: 3 modified".
	Cause string `json:"cause,omitempty"`
	// Generation is the number of the module tree that was in force.
	Generation int `json:"generation"`
	// Source tells versions of the module's files apart.
	Source  string          `json:"source,omitempty"`
	Attempt int             `json:"attempt"`
	Started time.Time       `json:"started"`
	Took    status.Duration `json:"took"`
	Steps   uint64          `json:"steps"`
	// Result is [ResultOK] or [ResultFailed].
	Result string `json:"result"`
	// Error is why it failed, without its secrets. It is in the sealed part, so it
	// is empty where that was not opened.
	Error string `json:"error,omitempty"`
	// AtCommit says that the hook's code has succeeded, and what it asked for was refused
	// or could not be written.
	AtCommit bool `json:"atCommit,omitempty"`
	// SealedWith is the id of the key.
	SealedWith string `json:"sealedWith"`
}

// Failed says that the run failed.
func (h *Header) Failed() bool { return h.Result == ResultFailed }

// Asked is set in the number of a run that the driver has counted, not the engine: a
// review or a conversion.
const Asked = 1 << 63

// ID is the id of a run: of the process, and of the number of the run
// (engine.RunHook.Run), with an "a" before it for one that is [Asked].
func ID(process string, run uint64) string {
	if run&Asked != 0 {
		return process + "-a" + strconv.FormatUint(run&^Asked, 10)
	}
	return process + "-" + strconv.FormatUint(run, 10)
}

// Process makes up what the ids of a process begin with: by the host, too, as the replicas of an instance may begin
// at the same moment.
func Process(started time.Time, host string) string {
	const letters = "abcdefghjkmnpqrstvwxyz23456789" // none that look alike
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", started.UnixNano(), host))
	var out [4]byte
	for i := range out {
		out[i] = letters[int(sum[i])%len(letters)]
	}
	return string(out[:])
}

// checkID refuses what cannot be an id, and so no name of a file.
func checkID(id string) bool {
	process, number, ok := strings.Cut(id, "-")
	if !ok || process == "" || len(id) > 40 || strings.Trim(process, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return false
	}
	_, err := strconv.ParseUint(strings.TrimPrefix(number, "a"), 10, 64)
	return err == nil
}

// Cause says what triggered a run, in a few words.
func Cause(events []builtins.Event) string {
	type sort struct{ binding, what string }
	var order []sort
	count := map[sort]int{}
	for _, e := range events {
		s := sort{e.Binding, e.Type}
		if e.Asked { // its events are all that triggers the hook, none of which has happened
			if s = (sort{"", "somebody asked for it"}); count[s] > 0 {
				continue
			}
		}
		if count[s]++; count[s] == 1 {
			order = append(order, s)
		}
	}
	var parts []string
	for i, s := range order {
		if i == 5 {
			parts = append(parts, "…")
			break
		}
		text := s.what
		if n := count[s]; n > 1 {
			text = strconv.Itoa(n) + " " + text
		}
		if s.binding != "" && s.binding != s.what {
			text = s.binding + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
