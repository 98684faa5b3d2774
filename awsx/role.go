package awsx

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// A Role is one in an account that lets others take it.
type Role struct {
	Name       string // with its path, if it has one: team/reader
	Account    string // twelve digits
	ExternalID string // that the role asks for; "" if it asks for none
	Session    string // how its calls are told apart in logs; "" means weir
}

// Assume is a configuration whose clients act as the role, under the guard and under the
// limits of the role's account. Asking for the role is a call under the limits of STS
// and of the account that asks.
func (g *Guard) Assume(cfg aws.Config, r Role) (aws.Config, error) {
	if err := r.check(); err != nil {
		return aws.Config{}, err
	}
	asking := cfg.Copy()
	g.attach(&asking, "")
	out := cfg.Copy()
	out.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(asking), r.arn(cfg.Region), func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "weir"
		if r.Session != "" {
			o.RoleSessionName = r.Session
		}
		if r.ExternalID != "" {
			o.ExternalID = &r.ExternalID
		}
	}), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow, o.ExpiryWindowJitterFrac = 5*time.Minute, 0.5 })
	g.attach(&out, r.Account)
	return out, nil
}

func (r Role) check() error {
	switch {
	case len(r.Account) != 12 || strings.Trim(r.Account, "0123456789") != "":
		return fmt.Errorf("awsx: role: account %q: want twelve digits", r.Account)
	case r.Name == "" || len(r.Name) > 512 || strings.Trim(r.Name, nameBytes+"/") != "":
		return fmt.Errorf("awsx: role: name %q: want letters, digits and _+=,.@-/ (and no ARN)", r.Name)
	}
	return nil
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-"

// arn is the role's in the partition of the region.
func (r Role) arn(region string) string {
	partition := "aws"
	switch {
	case strings.HasPrefix(region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return "arn:" + partition + ":iam::" + r.Account + ":role/" + r.Name
}
