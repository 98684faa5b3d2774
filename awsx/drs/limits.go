package drs

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"weak"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
)

// A service is an entity whose accounts have limits: AWS, or a server at another address.
type service struct {
	clock    clock.Clock
	endpoint string                    // "" for AWS
	client   weak.Pointer[http.Client] // reaches the server at the address; tests may have separate networks
}

var (
	limitsMu sync.Mutex
	limits   = make(map[service]*weir.LimitSet) // of this process
)

// limitsOf returns the limits that all clients of a service share in this process. They outlive the clients: a program that
// creates a client for each call must not begin with full limits each time.
func limitsOf(cfg *aws.Config, c clock.Clock) *weir.LimitSet {
	if !reflect.ValueOf(c).Comparable() {
		return new(weir.LimitSet) // clocks cannot be compared, so another client's may differ
	}
	s := service{clock: c}
	if e := aws.ToString(cfg.BaseEndpoint); e != "" && !ofAWS(e) {
		s.endpoint = e
		if client, ok := cfg.HTTPClient.(*http.Client); ok {
			s.client = weak.Make(client)
		}
	}
	limitsMu.Lock()
	defer limitsMu.Unlock()
	set := limits[s]
	if set == nil {
		set = new(weir.LimitSet)
		limits[s] = set
	}
	return set
}

// ofAWS reports whether an endpoint belongs to AWS. An account has several: public, FIPS, dual-stack, and private ones.
func ofAWS(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := "." + strings.ToLower(u.Hostname())
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}
