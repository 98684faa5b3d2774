package serve

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sidecar/config"
)

// A reload with unchanged JWT settings keeps the keys. Other reloads fetch them again.
func TestAReloadKeepsTheKeysOfTokens(t *testing.T) {
	var s Server
	j := config.JWT{URL: "https://h/keys", Issuer: "login", Audience: "weir", Timeout: time.Second}
	issued := func() any {
		c, err := s.issued(&j)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := issued()
	j.Scopes = map[string]string{"a": "write"}
	if issued() != first {
		t.Error("other scopes need other keys")
	}
	j.Audience = "other"
	if issued() == first {
		t.Error("another audience is checked by the old one")
	}
}
