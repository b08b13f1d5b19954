package builtins

import (
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// The function of t.http answers with a body, and with a status and headers if it likes.
func TestAnswersOfTests(t *testing.T) {
	headers := starlark.NewDict(1)
	if err := headers.SetKey(starlark.String("WWW-Authenticate"), starlark.String("Bearer")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		v      starlark.Value
		status int
		body   string
		header string
		err    string
	}{
		{starlark.String("text"), 200, "text", "", ""},
		{starlark.Bytes("\xff\x00"), 200, "\xff\x00", "", ""},
		{starlark.NewList([]starlark.Value{starlark.MakeInt(1)}), 200, "[1]", "", ""},
		{starlark.Tuple{starlark.MakeInt(404), starlark.String("gone")}, 404, "gone", "", ""},
		{starlark.Tuple{starlark.MakeInt(401), starlark.Bytes("\xff"), headers}, 401, "\xff", "Bearer", ""},
		{starlark.None, 0, "", "", "no answer"},
		{starlark.Tuple{starlark.MakeInt(1)}, 0, "", "", "neither (status, body) nor (status, body, headers)"},
		{starlark.Tuple{starlark.String("x"), starlark.String("y")}, 0, "", "", "status"},
	} {
		got, err := fetchedOf(test.v)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %s", test.v, err, test.err)
			}
			continue
		}
		if err != nil || got.Status != test.status || string(got.Body) != test.body || got.Headers["www-authenticate"] != test.header {
			t.Errorf("%s: got %+v, %v", test.v, got, err)
		}
	}
}
