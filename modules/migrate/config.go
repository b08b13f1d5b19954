package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// config is what a hook prints for --config, in configVersion v1.
type config struct {
	ConfigVersion    string       `json:"configVersion"`
	Settings         *settings    `json:"settings"`
	OnStartup        *float64     `json:"onStartup"`
	BeforeHelm       *float64     `json:"beforeHelm"`
	AfterHelm        *float64     `json:"afterHelm"`
	BeforeDeleteHelm *float64     `json:"beforeDeleteHelm"`
	AfterDeleteHelm  *float64     `json:"afterDeleteHelm"`
	BeforeAll        *float64     `json:"beforeAll"`
	AfterAll         *float64     `json:"afterAll"`
	Schedule         []scheduled  `json:"schedule"`
	Kubernetes       []watched    `json:"kubernetes"`
	Validating       []reviewed   `json:"kubernetesValidating"`
	Mutating         []reviewed   `json:"kubernetesMutating"`
	Conversion       []conversion `json:"kubernetesCustomResourceConversion"`
}

type settings struct {
	MinInterval string `json:"executionMinInterval"`
	MinPeriod   string `json:"executionMinPeriod"` // in old pages
	Burst       any    `json:"executionBurst"`
}

// common is what schedules and watches share.
type common struct {
	Name         string `json:"name"`
	Queue        string `json:"queue"`
	Group        string `json:"group"`
	AllowFailure bool   `json:"allowFailure"`
	Snapshots    texts  `json:"includeSnapshotsFrom"`
}

type scheduled struct {
	common
	Crontab string `json:"crontab"`
}

type watched struct {
	common
	APIVersion        string         `json:"apiVersion"`
	Kind              string         `json:"kind"`
	NameSelector      *names         `json:"nameSelector"`
	LabelSelector     *labelSelector `json:"labelSelector"`
	FieldSelector     *fieldSelector `json:"fieldSelector"`
	Namespace         *namespaces    `json:"namespace"`
	Events            *[]string      `json:"executeHookOnEvent"`
	WatchEvents       *[]string      `json:"watchEvent"`
	OnSynchronization *flag          `json:"executeHookOnSynchronization"`
	WaitForSync       *flag          `json:"waitForSynchronization"`
	KeepFullObjects   *flag          `json:"keepFullObjectsInMemory"`
	JQFilter          string         `json:"jqFilter"`
	Resync            string         `json:"resynchronizationPeriod"`
}

type names struct {
	MatchNames []string `json:"matchNames"`
}

// UnmarshalJSON takes a bare list, too, as some pages have it.
func (n *names) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, &n.MatchNames)
	}
	type plain names
	return json.Unmarshal(data, (*plain)(n))
}

// texts is a list, or one text.
type texts []string

// UnmarshalJSON reads ["a"], and "a".
func (t *texts) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*t = texts{""}
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}

type namespaces struct {
	NameSelector  *names         `json:"nameSelector"`
	LabelSelector *labelSelector `json:"labelSelector"`
}

type labelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"matchExpressions"`
}

type fieldSelector struct {
	MatchExpressions []struct {
		Field    string `json:"field"`
		Operator string `json:"operator"`
		Value    string `json:"value"`
	} `json:"matchExpressions"`
}

type reviewed struct {
	Name            string           `json:"name"`
	Group           string           `json:"group"`
	Snapshots       texts            `json:"includeSnapshotsFrom"`
	Rules           []map[string]any `json:"rules"`
	FailurePolicy   string           `json:"failurePolicy"`
	SideEffects     string           `json:"sideEffects"`
	Timeout         *int             `json:"timeoutSeconds"`
	MatchConditions []map[string]any `json:"matchConditions"`
	LabelSelector   *labelSelector   `json:"labelSelector"`
	Namespace       *namespaces      `json:"namespace"`
}

type conversion struct {
	Name        string `json:"name"`
	Group       string `json:"group"`
	Snapshots   texts  `json:"includeSnapshotsFrom"`
	CRD         string `json:"crdName"`
	Conversions []struct {
		From string `json:"fromVersion"`
		To   string `json:"toVersion"`
	} `json:"conversions"`
	groups []string // of all that were joined
}

// flag is a boolean that shell-operator takes as a text, too: "true".
type flag bool

// UnmarshalJSON reads true, "true" and the like.
func (f *flag) UnmarshalJSON(data []byte) error {
	switch strings.ToLower(strings.Trim(string(data), `"`)) {
	case "true", "yes":
		*f = true
	case "false", "no":
		*f = false
	default:
		return fmt.Errorf("%s is neither true nor false", data)
	}
	return nil
}

// is reports whether the flag is set to this.
func (f *flag) is(value bool) bool { return f != nil && bool(*f) == value }

// parseConfig reads the text of a config. unknown are fields that this tool does not know, and
// that are left out.
func parseConfig(text string) (c *config, unknown []string, err error) {
	if err := bounded.CheckYAML([]byte(text)); err != nil {
		return nil, nil, fmt.Errorf("the config %w", err)
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, nil, fmt.Errorf("the config is no YAML: %s", message.Line(err.Error()))
	}
	c = &config{}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(raw, c); {
	case errors.As(err, &wrong):
		return nil, nil, fmt.Errorf("the config: %s must not be %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	case err != nil:
		return nil, nil, fmt.Errorf("the config: %s", message.Line(err.Error()))
	}
	if c.ConfigVersion != "v1" {
		return nil, nil, errors.New("the config is not of configVersion v1: bring it to v1 first")
	}
	return c, unknownFields(raw), nil
}

var yamlLine = regexp.MustCompile(`\bline (\d+)\b`)

// inFile says where in the file of a hook an error of its config is, which begins at a line.
func inFile(err error, begins int) string {
	text := err.Error()
	if at := yamlLine.FindStringSubmatchIndex(text); at != nil {
		if line, err := strconv.Atoi(text[at[2]:at[3]]); err == nil {
			return text[:at[2]] + strconv.Itoa(begins+line-1) + text[at[3]:]
		}
	}
	return fmt.Sprintf("line %d: %s", begins, text)
}

// maxUnknown is how many fields are named.
const maxUnknown = 20

// unknownFields names the fields of a config that no type here has.
func unknownFields(raw []byte) (unknown []string) {
	var all any
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for len(unknown) < maxUnknown {
		data, err := json.Marshal(all)
		if err != nil {
			return unknown
		}
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		err = strict.Decode(&config{})
		if err == nil {
			return unknown
		}
		name, is := strings.CutPrefix(err.Error(), "json: unknown field ")
		if !is {
			return unknown
		}
		name = strings.Trim(name, `"`)
		unknown = append(unknown, name)
		drop(all, name)
	}
	return unknown
}

// drop takes a key out of all maps.
func drop(v any, key string) {
	for e := range object.All(v) {
		if m, is := e.(map[string]any); is {
			delete(m, key)
		}
	}
}
