// Package xray sends traces with annotations and metadata to AWS X-Ray: by OTLP over HTTP with signed requests (Signature Version
// 4), or to the X-Ray daemon by UDP.
package xray

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/observe/trace/otlp"
)

// Config configures an exporter.
type Config struct {
	AWS      aws.Config // its Region and Credentials
	URL      string     // "" means the regional endpoint, which accepts spans if CloudWatch's Transaction Search is on
	Resource otlp.Resource
	Client   *http.Client // nil means a new client
}

// New returns an exporter.
func New(c Config) (trace.Exporter, error) {
	if c.AWS.Region == "" || c.AWS.Credentials == nil {
		return nil, errors.New("xray: want a region and credentials")
	}
	s := &signer{config: c.AWS, v4: v4.NewSigner()}
	e, err := otlp.NewHTTP(otlp.HTTP{URL: cmp.Or(c.URL, regional(c.AWS.Region)), Resource: c.Resource, Client: c.Client, Sign: s.sign})
	if err != nil {
		return nil, fmt.Errorf("xray: %w", err)
	}
	return annotating{e, cmp.Or(c.Resource.Service, "weir")}, nil
}

// annotating adds annotations and metadata to the spans that it exports.
type annotating struct {
	to      trace.Exporter
	service string
}

// Export implements trace.Exporter.
func (a annotating) Export(ctx context.Context, spans []trace.Span) error {
	annotate(spans, a.service)
	return a.to.Export(ctx, spans)
}

func regional(region string) string { return "https://xray." + region + ".amazonaws.com/v1/traces" }

const service = "xray"

// A signer signs requests with the current credentials.
type signer struct {
	config aws.Config
	v4     *v4.Signer
}

func (s *signer) sign(r *http.Request, body []byte) error {
	keys, err := s.config.Credentials.Retrieve(r.Context())
	if err != nil {
		return fmt.Errorf("there are no credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	return s.v4.SignHTTP(r.Context(), keys, r, hex.EncodeToString(sum[:]), service, s.config.Region, time.Now())
}
