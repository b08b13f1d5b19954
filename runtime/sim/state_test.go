package sim

import (
	"encoding/base64"
	"fmt"
	"testing"
)

// The key tells values and state of a hook from all else that is kept, whatever that looks like.
func TestKeptOfAHook(t *testing.T) {
	data := map[string]any{}
	for key, text := range map[string]string{
		"layer.web-a.1":   `{"hook":"web/a","ops":[{"op":"set","path":["n"],"value":1}]}`,
		"state.web-a.1":   `{"hook":"web/a","state":{"seen":2}}`,
		"message.2":       `{"hook":"web/a","run":7,"message":{"url":"http://x"}}`,
		"finalizer.web-a": `{"hook":"web/a","kind":"ConfigMap"}`,
		"tick.web-a":      `{"hook":"web/a"}`,
	} {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	got := map[string]string{}
	for _, held := range (&stater{}).kept(map[string]any{"data": data}) {
		if got[held.Name] != "" {
			t.Errorf("%s is there twice", held.Name)
		}
		got[held.Name] = fmt.Sprint(held.Fields)
	}
	if fmt.Sprint(got) != "map[state of hook web/a:map[seen:2] values of hook web/a:map[n:1]]" {
		t.Errorf("kept is %v", got)
	}
}
