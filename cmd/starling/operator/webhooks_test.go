package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/webhook"
)

// Each flag changes what the driver is told.
func TestWebhookFlags(t *testing.T) {
	dir := t.TempDir()
	inPod, noPod := filepath.Join(dir, "namespace"), filepath.Join(dir, "none")
	if err := os.WriteFile(inPod, []byte("addons\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	byService := webhook.Reach{Service: "starling", Port: 443}
	for args, want := range map[string]webhook.Endpoint{
		"":                               {Address: ":9443", Reach: byService},
		"--webhook-address=127.0.0.1:1":  {Address: "127.0.0.1:1", Always: true, Reach: byService},
		"--webhook-service=hooks":        {Address: ":9443", Reach: webhook.Reach{Service: "hooks", Port: 443}},
		"--webhook-service=hooks:8443":   {Address: ":9443", Reach: webhook.Reach{Service: "hooks", Port: 8443}},
		"--webhook-url=https://a:9443/":  {Address: ":9443", Reach: webhook.Reach{URL: "https://a:9443"}},
		"--webhook-url=https://a:9443/x": {Address: ":9443", Reach: webhook.Reach{URL: "https://a:9443/x"}},
		"--webhook-client-ca=ca.crt":     {Address: ":9443", Reach: byService, ClientCA: "ca.crt"},
		"--webhook-cert-dir=" + dir:      {Address: ":9443", Reach: byService, CertDir: dir},
	} {
		got, err := parseWebhookFlags(t, args, "starling", inPod)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", args, diff)
		}
	}
	// Outside of a cluster there is no Service unless one is named.
	for args, reachable := range map[string]bool{"": false, "--webhook-service=hooks": true, "--webhook-url=https://a": true} {
		got, err := parseWebhookFlags(t, args, "starling", noPod)
		if err != nil || (got.Unreachable == "") != reachable {
			t.Errorf("%s: %q %v", args, got.Unreachable, err)
		}
	}
	// Names with dots are none of a Service.
	if got, err := parseWebhookFlags(t, "", "edge.eu", inPod); err != nil || got.Reach.Service != "edge-eu" {
		t.Errorf("%+v %v", got, err)
	}
	for args, want := range map[string]string{
		"--webhook-address=9443":                            `--webhook-address "9443" is no address`,
		"--webhook-service=Hooks":                           `--webhook-service "Hooks": want NAME or NAME:PORT`,
		"--webhook-service=hooks:0":                         `--webhook-service "hooks:0": "0" is no port`,
		"--webhook-url=http://a":                            `--webhook-url "http://a": want https://HOST:PORT`,
		"--webhook-url=a:9443":                              `--webhook-url "a:9443": want https://HOST:PORT`,
		"--webhook-url=https://a --webhook-service=hooks":   "exclude each other",
		"--webhook-cert-dir=" + filepath.Join(dir, "there"): "is no folder",
	} {
		if _, err := parseWebhookFlags(t, args, "starling", inPod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func parseWebhookFlags(t *testing.T, args, name, podFile string) (webhook.Endpoint, error) {
	t.Helper()
	var f webhookFlags
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.addFlags(fs)
	if err := fs.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return f.options(name, podFile)
}
