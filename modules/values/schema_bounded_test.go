package values

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// deepMap is a map in a map, so many times.
func deepMap(n int) map[string]any {
	if n == 0 {
		return map[string]any{}
	}
	return map[string]any{"a": deepMap(n - 1)}
}

// Copies of what $ref names are bounded, too: each definition here names the one before
// twice, or holds a large text.
func TestReferencesAreBounded(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString("definitions:\n  d0: {type: string}\n")
	for i := 1; i <= 60; i++ {
		fmt.Fprintf(&doubling, "  d%d: {type: object, properties: {a: {$ref: '#/definitions/d%d'}, b: {$ref: '#/definitions/d%d'}}}\n", i, i-1, i-1)
	}
	var chain strings.Builder
	chain.WriteString("definitions:\n  d0: {type: string}\n")
	for i := 1; i <= 5000; i++ {
		fmt.Fprintf(&chain, "  d%d: {$ref: '#/definitions/d%d'}\n", i, i-1)
	}
	large := "definitions:\n  d: {type: string, description: " + strings.Repeat("x", 500_000) + "}\nproperties:\n"
	for i := range 100 {
		large += fmt.Sprintf("  p%d: {$ref: '#/definitions/d'}\n", i)
	}
	for _, tt := range []struct{ name, schema, want string }{
		{"doubling", doubling.String() + "properties: {a: {$ref: '#/definitions/d60'}}", "with each $ref written out the schema has more than 100000 parts"},
		{"a chain", chain.String() + "properties: {a: {$ref: '#/definitions/d5000'}}", "more than 100 schemas refer to each other in a row"},
		{"large texts", large, "or 32 MiB of text"},
		{"the whole file", "properties: {a: {$ref: '#'}}", "# refers to itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, err := ParseSchema("values.yaml", []byte(tt.schema), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
				t.Errorf("got %.300v, want %s", err, tt.want)
			}
			if took := time.Since(start); took > time.Minute {
				t.Error(took)
			}
		})
	}
}

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
			map[string]any{"l": texts}, 1, "must match one of the alternatives in anyOf"},
		{"keys and a large pattern", `{properties: {m: {type: object, patternProperties: {"^(([ab]?){1000}|c)*d$": {type: integer}}, x-kubernetes-preserve-unknown-fields: true}}}`,
			map[string]any{"m": map[string]any{long: int64(1)}}, 1, "there is too much to check"},
		{"patterns below patterns", `{` + strings.Repeat(`patternProperties: {"a": {type: object, `, 30) + strings.Repeat(`}}`, 30) + `}`,
			deepMap(30), 0, ""},
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
