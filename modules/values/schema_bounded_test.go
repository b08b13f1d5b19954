package values

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A check that everybody waits for ends soon, whatever the values and the schema.
func TestChecksOfValuesAreBounded(t *testing.T) {
	wrong, texts, maps, fields := make([]any, 100_000), make([]any, 100_000), make([]any, 100_000), map[string]any{}
	for i := range wrong {
		wrong[i], maps[i] = "x", map[string]any{}
		texts[i] = fmt.Sprintf("name-%d", i)
		fields[fmt.Sprintf("field-%d", i)] = int64(1)
	}
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	long := strings.Repeat("a", 1<<20)
	tests := []struct {
		name, schema string
		values       map[string]any
		problems     int // at least
		want         string
	}{
		{"items of the wrong kind", `{properties: {l: {type: array, items: {type: integer}}}}`,
			map[string]any{"l": wrong}, maxProblems, "and more: only 99 problems are looked for at once"},
		{"unknown fields", `{properties: {l: {type: string}}}`, fields, maxProblems, "and more: only 99 problems are looked for at once"},
		{"required for Helm", `{properties: {l: {type: array, items: {type: object, x-required-for-helm: [a]}}}}`,
			map[string]any{"l": maps}, maxProblems, "and more: only 99 problems are looked for at once"},
		{"a large pattern on a long text", `{properties: {t: {type: string, pattern: "^(([ab]?){1000}|c)*d$"}}}`,
			map[string]any{"t": long}, 1, "there is too much to check"},
		{"a long text that is too long", `{properties: {t: {type: string, maxLength: 10, pattern: "^(([ab]?){1000}|c)*d$"}}}`,
			map[string]any{"t": long}, 1, "t: must be at most 10 characters long"},
		{"a large enum", `{properties: {l: {type: array, items: {type: string, enum: [` + strings.Join(names, ", ") + `]}}}}`,
			map[string]any{"l": wrong}, maxProblems, `must be one of "n0", `},
		{"a large enum and much that passes", `{properties: {l: {type: array, items: {type: string, enum: [` + strings.Join(names, ", ") + `, "x"]}}}}`,
			map[string]any{"l": wrong}, 1, "there is too much to check"},
		{"alternatives that look at all items", `{properties: {l: {type: array, items: {type: string}, anyOf: [{items: {maxLength: 1}}, {items: {maxLength: 2}}]}}}`,
			map[string]any{"l": texts}, 1, "there is too much to check"},
		{"many small texts", `{properties: {l: {type: array, items: {type: string, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$"}}}}`,
			map[string]any{"l": texts}, 0, ""},
		{"a long text in order", `{properties: {t: {type: string, pattern: "^([a-z]{1,64}[.]?)*$"}}}`,
			map[string]any{"t": long[:256<<10]}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseSchema("values.yaml", []byte(tt.schema), nil)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			ps := append(append(s.Unknown(tt.values), s.Validate(tt.values, nil)...), s.missing(tt.values)...)
			t.Logf("%s, %d problems", time.Since(start), len(ps))
			if len(ps) < tt.problems || len(ps) > 2*maxProblems || tt.problems == 0 && len(ps) > 0 {
				t.Fatalf("%d problems", len(ps))
			}
			all := ""
			for _, p := range ps {
				all += p.String() + "\n"
			}
			if !strings.Contains(all, tt.want) {
				t.Errorf("got %.2000s\nwant %s", all, tt.want)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("%s", took)
			}
		})
	}
}
