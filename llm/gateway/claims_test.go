package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/llm/gateway"
)

func TestWhoHasNoTokenIsNobodyOrRefused(t *testing.T) {
	for _, optional := range []bool{false, true} {
		c, err := gateway.NewClaims(gateway.ClaimOptions{Secret: []byte("of a house"), Optional: optional})
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Key("sub")(&http.Request{Header: http.Header{}})
		if optional != (err == nil) || v != "" {
			t.Errorf("optional %v: %q, %v", optional, v, err)
		}
		if err != nil && !strings.Contains(err.Error(), "no token in Authorization") {
			t.Errorf("it is told %v", err)
		}
	}
}
