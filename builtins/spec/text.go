package spec

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/runtime/object"
)

// MaxText is the most bytes of text that a builtin makes or reads.
const MaxText = 32 << 20

// CheckText refuses a text of n bytes that is larger than MaxText.
func CheckText(n int) error {
	if n > MaxText {
		return fmt.Errorf("the text would be larger than %d MiB", MaxText>>20)
	}
	return nil
}

// EncodeJSON writes plain data, in which integers may be *big.Int, as JSON: floats
// with a point or an exponent, so that they are floats when read again.
func EncodeJSON(tree any) (string, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object.Change(tree, floatAsText)); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), CheckText(out.Len())
}

func floatAsText(v any) any {
	if f, is := v.(float64); is {
		return json.Number(starlark.Float(f).String())
	}
	return v
}

// DNSLabel refuses what Kubernetes would not take as a name of a namespace.
func DNSLabel(name string, most int) error {
	if len(name) > most {
		return fmt.Errorf("%q is longer than %d characters", Clip(name), most)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%q is no valid name: lower case letters, digits and -", Clip(name))
	}
	return nil
}
