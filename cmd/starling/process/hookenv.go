package process

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// HookEnv names the environment variables that hooks may read.
type HookEnv []string

// AddFlags declares --hook-env.
func (e *HookEnv) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar((*[]string)(e), "hook-env", nil, "let hooks read these `variables` of the environment, by env(\"NAME\")")
}

// Lookup reads the variables, and returns what env asks.
func (e HookEnv) Lookup() (func(name string) (string, error), error) {
	texts := map[string]string{}
	for _, name := range e {
		text, set := os.LookupEnv(name)
		if !set {
			return nil, fmt.Errorf("--hook-env %s: there is no such variable in the environment; set it, if need be to nothing", name)
		}
		texts[name] = text
	}
	return func(name string) (string, error) {
		text, named := texts[name]
		if !named {
			return "", fmt.Errorf("hooks may not read %s; name it: starling run --hook-env %s", name, name)
		}
		return text, nil
	}, nil
}
