package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/retry"
)

// GatewayAPI is how API Gateway is read and changed: by JSON over HTTP, signed. It takes the permissions apigateway:GET,
// apigateway:PATCH and apigateway:POST.
type GatewayAPI struct {
	AWS       aws.Config        // its Region and Credentials
	URL       string            // "" means that of the region
	Transport http.RoundTripper // nil means one of its own
}

// policy is for what an account may ask of API Gateway: a change of a usage plan each 20 s, for instance.
var policy = weir.Policy{Retry: retry.Config{Attempts: 8, ThrottleBase: 2 * time.Second, Cap: 20 * time.Second}}

// A gatewayClient asks with one upstream, so that what API Gateway refuses for rate is asked again later.
type gatewayClient struct {
	at     string
	region string
	http   http.Client
	signer *resign.Signer
}

func (a *GatewayAPI) client() (*gatewayClient, error) {
	if a.AWS.Region == "" || a.AWS.Credentials == nil {
		return nil, errors.New("API Gateway: want a region and credentials")
	}
	signer, err := resign.New(resign.Options{Service: "apigateway", Region: a.AWS.Region, Credentials: a.AWS.Credentials})
	if err != nil {
		return nil, err
	}
	u, err := weir.New("apigateway", policy, weir.Options{})
	if err != nil {
		return nil, err
	}
	domain := ".amazonaws.com"
	if strings.HasPrefix(a.AWS.Region, "cn-") {
		domain += ".cn"
	}
	return &gatewayClient{at: cmp.Or(a.URL, "https://apigateway."+a.AWS.Region+domain), region: a.AWS.Region, signer: signer, http: http.Client{
		Transport:     httpx.NewTransport(u, a.Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what is signed is for one host
	}}, nil
}

// A gatewayError is what API Gateway refused a request with.
type gatewayError struct {
	status        int
	code, message string
}

func (e *gatewayError) Error() string {
	said := cmp.Or(e.code, fmt.Sprintf("status %d", e.status))
	if e.message != "" {
		said += ": " + e.message
	}
	return "API Gateway answers with " + said
}

// mostGatewayAnswer is far beyond what API Gateway says at once.
const mostGatewayAnswer = 16 << 20

// ask makes one request: in is sent as JSON unless it is nil, and out is what is answered.
func (c *gatewayClient) ask(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	var err error
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.at+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json") // or it answers in HAL
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "weir")
	plan, err := c.signer.Plan(r)
	if err == nil {
		err = plan.Sign(ctx, r)
	}
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return fmt.Errorf("API Gateway of %s cannot be asked: %w", c.region, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostGatewayAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of API Gateway broke off: %w", err)
	case resp.StatusCode/100 != 2:
		return gatewayRefusal(resp, answer)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the answer of API Gateway cannot be read: %w", err)
	}
	return nil
}

func gatewayRefusal(resp *http.Response, answer []byte) error {
	var said struct {
		Type    string `json:"__type"`
		Message string `json:"message"` // in any letters
	}
	_ = json.Unmarshal(answer, &said) // what is no JSON says nothing
	e := &gatewayError{status: resp.StatusCode, code: cmp.Or(resp.Header.Get("X-Amzn-Errortype"), said.Type), message: fmt.Sprintf("%.300s", said.Message)}
	e.code, _, _ = strings.Cut(e.code[strings.LastIndexByte(e.code, '#')+1:], ":")
	return e
}
