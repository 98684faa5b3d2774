//go:build unix

package alerts

import (
	"crypto/tls"
	"net/http"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// insecure calls a weir with a self-signed certificate.
var insecure = &http.Client{Timeout: served.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
