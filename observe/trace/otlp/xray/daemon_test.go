package xray

import "testing"

func TestAddressOfTheDaemon(t *testing.T) {
	for value, want := range map[string]string{
		"10.0.0.1:2000":                       "10.0.0.1:2000",
		"[::1]:2000":                          "[::1]:2000",
		"xray:2001":                           "xray:2001",
		"udp:xray:2001":                       "xray:2001",
		"tcp:10.0.0.1:2000 udp:10.0.0.2:2001": "10.0.0.2:2001",
		"udp:10.0.0.2:2001 tcp:10.0.0.1:2000": "10.0.0.2:2001",
		"":                                    "",
		"10.0.0.1":                            "",
		":2000":                               "",
		"xray:http":                           "",
		"xray:0":                              "",
		"tcp:10.0.0.1:2000":                   "",
		"udp:10.0.0.1:2000 udp:10.0.0.2:2000": "",
		"http://10.0.0.1:2000":                "",
		"10.0.0.1:2000,10.0.0.2:2000":         "",
	} {
		if got, err := UDP(value); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", value, got, err, want)
		}
	}
}
