package effect

import (
	"encoding/json"
	"net/netip"
	"testing"
)

func TestFoundHosts(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.example.com/path": "named api.example.com:443", "http://api.example.com:8080": "named api.example.com:8080",
		"api.example.com": "named api.example.com", "ldap.corp.local:636": "named ldap.corp.local:636", " 10.1.2.3:80 ": "10.1.2.3:80",
		"ldaps://ldap.corp.local": "named ldap.corp.local", "https://[fd12::5]": "[fd12::5]:443",
		"https://169.254.169.254/latest": "", "127.0.0.1": "", "localhost:80": "", "[::1]:80": "", "0.0.0.0": "", "100.100.100.200": "", "fd00:ec2::254": "",
		"10.0.0.0/8": "", "*.example.com": "", "": "", "a b": "", "https://": "", "::ffff:127.0.0.1": "", "2002:7f00:1::": "",
	} {
		h, err := FoundText(text)
		if (err == nil) != (want != "") || err == nil && h.String() != want {
			t.Errorf("%q: %q, %v", text, h, err)
		}
	}
	for addr, want := range map[string]bool{"10.1.2.3": true, "100.64.3.4": true, "93.184.216.34": true, "fd12::5": true,
		"127.0.0.1": false, "169.254.1.1": false, "fe80::1": false, "::1": false, "": false, "name": false, "224.0.0.1": false} {
		if h, ok := FoundAddress(addr, 80); ok != want || ok && (!(Hosts{h}).Allow(addr, 80) || (Hosts{h}).Allow(addr, 81)) {
			t.Errorf("%s: %v, %v", addr, h, ok)
		}
	}
	if h, ok := FoundName("db.shop.svc", 5432); !ok || h.String() != "db.shop.svc:5432" {
		t.Errorf("%v, %v", h, ok)
	}
}

// A name that a user has written leads into private networks, and a listed one does not.
func TestNamesThatAreFoundLeadToPrivateNetworks(t *testing.T) {
	named, err := FoundText("https://ldap.corp.local:636")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := ParseHosts([]string{"other.corp.local"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(append(listed, named))
	if err != nil {
		t.Fatal(err)
	}
	var hosts Hosts // as a record keeps them
	if err := json.Unmarshal(text, &hosts); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host, addr string
		port       uint16
		want       bool
	}{
		{"ldap.corp.local", "10.1.2.3", 636, true},
		{"LDAP.corp.local.", "10.1.2.3", 636, true},
		{"ldap.corp.local", "10.1.2.3", 80, false},
		{"ldap.corp.local", "127.0.0.1", 636, false},
		{"ldap.corp.local", "169.254.169.254", 636, false},
		{"ldap.corp.local", "::ffff:169.254.169.254", 636, false},
		{"other.corp.local", "10.1.2.3", 636, false},
		{"other.corp.local", "93.184.216.34", 636, true},
	} {
		if got := hosts.AllowAddress(tt.host, netip.MustParseAddr(tt.addr), tt.port); got != tt.want {
			t.Errorf("%s at %s:%d: %v", tt.host, tt.addr, tt.port, got)
		}
	}
	if _, err := ParseHosts([]string{"named ldap.corp.local"}); err == nil {
		t.Error("module(http = […]) takes the form of found hosts")
	}
}
