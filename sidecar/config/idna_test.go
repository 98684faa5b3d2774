package config

import "testing"

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
