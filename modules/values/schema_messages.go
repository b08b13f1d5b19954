package values

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapi "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/starling-operator/starling/runtime/message"
)

// resultProblems says in our words what the validator found. Its own messages
// quote values, which may be secrets.
func resultProblems(r *validate.Result) []Problem {
	if r == nil {
		return nil
	}
	var out []Problem
	for _, err := range r.Errors {
		out = append(out, resultProblem(err))
	}
	// Some findings are reported once a branch of the schema.
	sortProblems(out)
	return slices.CompactFunc(out, func(a, b Problem) bool { return a == b })
}

func resultProblem(err error) Problem {
	var v *openapi.Validation
	var branch *branchError
	switch {
	case errors.As(err, &v):
		return Problem{Path: strings.Trim(v.Name, "."), Message: validationMessage(v)}
	case errors.As(err, &branch):
		return Problem{Path: strings.Trim(branch.path, "."), Message: branch.message}
	}
	return Problem{Message: "does not pass the schema"}
}

// MessageRequired is the message about a field that is required and not there.
const MessageRequired = "is required"

func validationMessage(v *openapi.Validation) string {
	switch v.Code() {
	case openapi.RequiredFailCode:
		return MessageRequired
	case openapi.InvalidTypeCode:
		return typeMessage(v)
	case openapi.EnumFailCode:
		return "must be one of " + listOf(v.Values)
	case openapi.TooLongFailCode:
		return fmt.Sprintf("must be at most %v characters long", v.Valid)
	case openapi.TooShortFailCode:
		return fmt.Sprintf("must be at least %v characters long", v.Valid)
	case openapi.MaxItemsFailCode:
		return fmt.Sprintf("must have at most %v items", v.Valid)
	case openapi.MinItemsFailCode:
		return fmt.Sprintf("must have at least %v items", v.Valid)
	case openapi.TooManyPropertiesCode:
		return fmt.Sprintf("must have at most %v fields", v.Valid)
	case openapi.TooFewPropertiesCode:
		return fmt.Sprintf("must have at least %v fields", v.Valid)
	case openapi.UniqueFailCode:
		return "must not hold the same item twice"
	case openapi.PatternFailCode, openapi.MaxFailCode, openapi.MinFailCode, openapi.MultipleOfFailCode:
		return "must " + afterShould(v.Error())
	}
	return "does not pass the schema"
}

// typeMessage turns "x in body must be of type integer: "string"" into words.
func typeMessage(v *openapi.Validation) string {
	_, rest, ok := strings.Cut(v.Error(), "must be of type ")
	if !ok {
		return "has the wrong type"
	}
	want, _, _ := strings.Cut(rest, ":")
	want, _, _ = strings.Cut(want, ", because")
	names := strings.FieldsFunc(want, func(r rune) bool { return strings.ContainsRune("[], ", r) })
	for i, n := range names {
		names[i] = article(n)
	}
	return "must be " + strings.Join(names, " or ")
}

func article(typ string) string {
	switch typ {
	case "object":
		return "a map"
	case "array":
		return "a list"
	case "integer":
		return "an integer"
	case "boolean", "number", "string":
		return "a " + typ
	case "null":
		return "null"
	}
	return "a valid " + typ
}

// afterShould returns what follows "should": bounds and patterns, which come
// from the schema.
func afterShould(msg string) string {
	if _, rest, ok := strings.Cut(msg, " should "); ok {
		return rest
	}
	return "pass the schema"
}

func listOf(vs []any) string {
	const most = 20
	var out []string
	for i, v := range vs {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(vs)-most))
			break
		}
		if s, ok := v.(string); ok {
			out = append(out, strconv.Quote(s))
		} else {
			out = append(out, fmt.Sprint(v))
		}
	}
	return strings.Join(out, ", ")
}

// listProblem is a list that x-kubernetes-list-type does not allow.
func listProblem(e *field.Error) Problem {
	p := Problem{Path: e.Field, Message: "does not pass x-kubernetes-list-type"}
	switch e.Type {
	case field.ErrorTypeDuplicate:
		p.Message = "is in the list twice"
	case field.ErrorTypeRequired:
		p.Message = "is required: it is a key of x-kubernetes-list-map-keys"
	}
	return p
}

// ruleProblem is a CEL rule that failed.
func ruleProblem(e *field.Error) Problem {
	p := Problem{Path: e.Field, Message: e.Detail}
	if p.Path == "<nil>" {
		p.Path = ""
	}
	p.Message = cmp.Or(p.Message, "does not pass a rule of the schema")
	p.Message = message.Line(p.Message)
	return p
}

// fieldErrors writes what is wrong with a schema itself in one line.
func fieldErrors(errs field.ErrorList) []string {
	const most = 5
	var out []string
	for i, e := range errs {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(errs)-most))
			break
		}
		detail := message.Line(e.Detail)
		if detail == "" && e.Type == field.ErrorTypeRequired {
			detail = MessageRequired
		}
		if _, after, ok := strings.Cut(" "+detail, " in body "); ok {
			detail = after
		}
		out = append(out, schemaPath(e.Field)+detail)
	}
	return out
}

// schemaPath turns a path in a schema, "properties[values].properties[web].type",
// into a path in the values and the keyword: "web: type ".
func schemaPath(path string) string {
	values, keyword := "", ""
	rest := strings.TrimPrefix(path, "properties["+wrapKey+"]")
	for rest != "" {
		rest = strings.TrimPrefix(rest, ".")
		switch {
		case strings.HasPrefix(rest, "properties["):
			name, after, _ := strings.Cut(rest[len("properties["):], "]")
			values, rest = joinKey(values, name), after
		case strings.HasPrefix(rest, "additionalProperties."), strings.HasPrefix(rest, "items."):
			_, rest, _ = strings.Cut(rest, ".")
			values += "[*]"
		default:
			keyword, rest = rest, ""
		}
	}
	if keyword != "" {
		keyword += " "
	}
	if values == "" {
		return keyword
	}
	return values + ": " + keyword
}

// splitPath turns the path of a problem into keys, as well as it can: a key that
// holds a dot is not found again.
func splitPath(path string) []string {
	path = strings.NewReplacer("[", ".", "]", "", `"`, "").Replace(path)
	return strings.Split(strings.Trim(path, "."), ".")
}
