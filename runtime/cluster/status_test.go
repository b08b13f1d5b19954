package cluster

import (
	"testing"
	"time"
)

// The status that a controller has written is told from that of others, and from another one.
func TestStatus(t *testing.T) {
	live := parse(t, `
apiVersion: example.org/v1
kind: Application
metadata:
  name: x
  managedFields:
  - {manager: us, operation: Apply, apiVersion: example.org/v1, time: "2026-01-01T00:00:05Z", fieldsV1: {"f:metadata": {"f:finalizers": {}}}}
  - manager: us
    operation: Apply
    apiVersion: example.org/v1
    subresource: status
    time: "2026-01-01T00:00:07Z"
    fieldsV1: {"f:status": {"f:url": {}, "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:type": {}, "f:status": {}}}}}
  - {manager: them, operation: Update, apiVersion: example.org/v1, subresource: status, fieldsV1: {"f:status": {"f:seen": {}}}}
status:
  url: https://x
  seen: 3
  conditions: [{type: Ready, status: "True"}, {type: Seen, status: "True"}]
`)
	want := func(text string) map[string]any {
		return parse(t, "apiVersion: example.org/v1\nkind: Application\nmetadata: {name: x}\nstatus: "+text)
	}
	for text, same := range map[string]bool{
		`{url: "https://x", conditions: [{type: Ready, status: "True"}]}`:          true,
		`{url: "https://y", conditions: [{type: Ready, status: "True"}]}`:          false,
		`{url: "https://x", conditions: [{type: Ready, status: "False"}]}`:         false,
		`{conditions: [{type: Ready, status: "True"}]}`:                            false, // it goes
		`{url: "https://x", more: 1, conditions: [{type: Ready, status: "True"}]}`: false,
	} {
		if got := Same(want(text), live, "us", "status"); got != same {
			t.Errorf("%s: %t", text, got)
		}
	}
	if Same(want("{seen: 3}"), live, "them", "status") {
		t.Error("an update is no apply")
	}
	fields, at := StatusOf(live, "us")
	if len(fields) != 2 || fields["url"] != "https://x" || !at.Equal(time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)) {
		t.Errorf("%v at %s", fields, at)
	}
	if fields, at := StatusOf(live, "nobody"); fields != nil || !at.IsZero() {
		t.Errorf("%v at %s", fields, at)
	}
}
