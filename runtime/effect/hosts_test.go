package effect

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

func TestHosts(t *testing.T) {
	hosts, err := ParseHosts([]string{"api.example.com", "*.Example.org:8443", "10.0.0.0/8", "192.168.1.1:8080", "fd00::/8:9000", "[fd01::1]:80", "localhost:3000"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host string
		port uint16
		want bool
	}{
		{"api.example.com", 443, true},
		{"API.example.com.", 8080, true},
		{"xapi.example.com", 443, false},
		{"a.api.example.com", 443, false},
		{"example.org", 8443, false},
		{"a.example.org", 8443, true},
		{"a.b.example.org", 8443, true},
		{"a.example.org", 443, false},
		{"evil-example.org", 8443, false},
		{"10.1.2.3", 1, true},
		{"11.1.2.3", 80, false},
		{"::ffff:10.1.2.3", 80, true},
		{"192.168.1.1", 8080, true},
		{"192.168.1.1", 80, false},
		{"192.168.1.2", 8080, false},
		{"fd12::5", 9000, true},
		{"fd12::5", 80, false},
		{"fd01::1", 80, true},
		{"fd01::1%eth0", 80, true}, // the zone says only which way
		{"localhost", 3000, true},
		{"localhost", 80, false},
		{"127.0.0.1", 3000, false},
		{"0x0a010203", 80, false},
		{"", 80, false},
	} {
		if got := hosts.Allow(test.host, test.port); got != test.want {
			t.Errorf("%s port %d: got %v", test.host, test.port, got)
		}
	}
	for _, test := range []struct {
		host, addr string
		port       uint16
		want       bool
	}{
		{"api.example.com", "93.184.216.34", 443, true},
		{"api.example.com", "2606:2800:220:1::1", 443, true},
		{"api.example.com", "10.9.9.9", 443, true}, // its range is listed
		{"api.example.com", "172.16.0.1", 443, false},
		{"api.example.com", "127.0.0.1", 443, false},
		{"api.example.com", "::1", 443, false},
		{"api.example.com", "0.0.0.0", 443, false},
		{"api.example.com", "169.254.169.254", 80, false},
		{"api.example.com", "::ffff:169.254.169.254", 80, false},
		{"api.example.com", "64:ff9b::a9fe:a9fe", 80, false},
		{"api.example.com", "2002:7f00:1::", 80, false},
		{"api.example.com", "::127.0.0.1", 80, false},
		{"api.example.com", "100.64.1.1", 80, false},
		{"api.example.com", "fe80::1%eth0", 80, false},
		{"api.example.com", "224.0.0.1", 80, false},
		{"api.example.com", "255.255.255.255", 80, false},
		{"api.example.com", "fd00:ec2::254", 80, false},
		{"api.example.com", "fd00:ec2::254", 9000, true},
		{"localhost", "127.0.0.1", 3000, true},
		{"localhost", "::1", 3000, true},
		{"localhost", "10.0.0.1", 3000, true},
		{"localhost", "192.168.7.7", 3000, false},
		{"a.localhost", "127.0.0.1", 3000, false},
		{"10.0.0.1", "10.0.0.1", 80, true},
		{"93.184.216.34", "93.184.216.34", 80, false}, // an address must be listed, of whatever kind
	} {
		if got := hosts.AllowAddress(test.host, netip.MustParseAddr(test.addr), test.port); got != test.want {
			t.Errorf("%s at %s port %d: got %v", test.host, test.addr, test.port, got)
		}
	}
	text, err := json.Marshal(hosts)
	if err != nil || !strings.Contains(string(text), `"*.Example.org:8443"`) {
		t.Fatalf("%s, %v", text, err)
	}
	var again Hosts
	if err := json.Unmarshal(text, &again); err != nil || !again.Allow("a.example.org", 8443) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestHostsThatAreNone(t *testing.T) {
	for entry, want := range map[string]string{
		"":                             "is no host",
		"*":                            "is no host",
		"*.com":                        "a wildcard stands for names below a domain",
		"a.*.com":                      "is no host",
		"https://a.example":            "without \"https://\"",
		"a.example/path":               "a path does not belong here",
		"a.example:0":                  "the port must be 1 to 65535",
		"a.example:70000":              "the port must be",
		"a.example:":                   "the port must be",
		"10.1.2.3/8":                   "10.0.0.0/8 is meant",
		"10.0.0.0/33":                  "is no range",
		"::ffff:10.0.0.0/104":          "is no range",
		"fe80::1%eth0":                 "a zone",
		"user@a.example":               "is no host",
		"ä.example":                    "is no host",
		"a..b":                         "is no host",
		"[a.example]:80":               "is no host",
		"a b":                          "is no host",
		strings.Repeat("a.", 200):      "too long",
		strings.Repeat("a", 64) + ".b": "is no host",
	} {
		if _, err := ParseHosts([]string{"ok.example", entry}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "element 1: ") {
			t.Errorf("%q: got %v, want %q", entry, err, want)
		}
	}
	if _, err := ParseHosts(make([]string, 101)); err == nil {
		t.Error("101 entries are taken")
	}
}

func TestWhereShowsNothingSecret(t *testing.T) {
	for r, want := range map[*Request]string{
		{Method: "POST", URL: "https://a.example/x%20y?token=hush"}:        "POST https://a.example/x%20y",
		{Method: "POST", URL: "https://a.example:8443/hush", Hidden: true}: "POST https://a.example:8443/***",
		{Method: "GET", URL: "http://\x00hush"}:                            "GET a broken URL",
	} {
		if got := r.Where(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
