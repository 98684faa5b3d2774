package config

import (
	"strings"
	"testing"
)

func TestHostsBeyondASCIIAreWrittenAsIDNAHasThem(t *testing.T) {
	for in, want := range map[string]string{
		"bücher.example": "xn--bcher-kva.example", "BÜCHER.example:8080": "xn--bcher-kva.example:8080", "例え.jp": "xn--r8jz45g.jp", "straße.example": "xn--strae-oqa.example",
		"a.example:1": "a.example:1", "[::1]:80": "[::1]:80", "bad ü.example": "bad ü.example",
	} {
		if got := asciiHost(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Hosts are in the form that is resolved and that browsers send, wherever they are configured.
func TestHostsBeyondASCIIAreConvertedEverywhere(t *testing.T) {
	f := parse(t, `
hosts: [bücher.example]
origins: ["https://bücher.example:8443", "https://app.example"]
store: {redis: "rediss://bücher.example:6379?master_set=ü"}
upstreams: {a: {url: "http://bücher.example", hosts: ["*.bücher.example"], routes: [{host: bücher.example}]}}
`)
	const ascii = "xn--bcher-kva.example"
	if got := strings.Join(f.Origins, " "); got != "https://"+ascii+":8443 https://app.example" {
		t.Errorf("origins: %s", got)
	}
	if got := f.Store.Redis; got != "rediss://"+ascii+":6379?master_set=ü" {
		t.Errorf("store: %s", got)
	}
	u := f.Upstreams[0]
	if len(f.Hosts) != 1 || f.Hosts[0] != ascii || u.URL.Host != ascii || u.Routes[0].Host != ascii {
		t.Errorf("hosts %v, URL %s, routes %+v", f.Hosts, u.URL, u.Routes)
	}
	if u.Hosts[0] != "*."+ascii {
		t.Errorf("hosts of the upstream: %v", u.Hosts)
	}
}
