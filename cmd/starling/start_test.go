package main

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// startBytes is what the init of the packages of Starling may allocate. It only falls: each command waits for it, and
// so does each of hundreds of starts in tests.
const startBytes = 1_450_000

// The start of a process is the init of its packages: a pattern with a large count, or a table that is made for
// nothing, shows here.
func TestStart(t *testing.T) {
	cmd := exec.Command("starling", "version")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	ours, lines := 0, regexp.MustCompile(`(?m)^init (\S*) @.* (\d+) bytes,`).FindAllStringSubmatch(string(out), -1)
	for _, line := range lines {
		if strings.HasPrefix(line[1], "github.com/starling-operator/") {
			n, _ := strconv.Atoi(line[2])
			ours += n
		}
	}
	if len(lines) < 100 || ours > startBytes {
		t.Errorf("the init of the packages of Starling takes %d bytes, and may take %d (%d packages in all)", ours, startBytes, len(lines))
	}
}
