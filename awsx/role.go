package awsx

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// A Role is an IAM role that can be assumed.
type Role struct {
	Name       string // with its path, if it has one: team/reader
	Account    string // twelve digits
	ExternalID string // required by the role; "" if it requires none
	Session    string // identifies its calls in logs; "" means weir
}

// Assume returns a configuration whose clients act as the role, under the guard and the limits of the role's account. Assuming
// the role is a call under the limits of STS and of the calling account.
func (g *Guard) Assume(cfg aws.Config, r Role) (aws.Config, error) {
	if err := r.check(); err != nil {
		return aws.Config{}, err
	}
	asking := cfg.Copy()
	g.attach(&asking, g.o.Account)
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

// check applies the rules of IAM and STS (their API references, 2026-11).
func (r Role) check() error {
	switch {
	case !only(r.Account, 12, 12, digits):
		return fmt.Errorf("awsx: role: account %q: want twelve digits", r.Account)
	case !isRoleName(r.Name):
		return fmt.Errorf("awsx: role: name %q: want at most 64 letters, digits and _+=,.@-, with a path before it if it has one (team/reader), and no ARN", r.Name)
	case r.Session != "" && !only(r.Session, 2, 64, nameBytes):
		return fmt.Errorf("awsx: role: session %q: want 2 to 64 letters, digits and _+=,.@-", r.Session)
	case r.ExternalID != "" && !only(r.ExternalID, 2, 1224, nameBytes+":/"):
		return errors.New("awsx: role: external id: want 2 to 1224 letters, digits and _+=,.@:/-") // the value may be a secret
	}
	return nil
}

// isRoleName reports whether a name, with its path, is valid for a role.
func isRoleName(name string) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	return only(last, 1, 64, nameBytes) && only(name, 1, 512, nameBytes+"/") && name[0] != '/' && !strings.Contains(name, "//")
}

const (
	digits    = "0123456789"
	nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits + "_+=,.@-"
)

// only reports whether s consists of these bytes and has a length in bounds.
func only(s string, least, most int, bytes string) bool {
	return least <= len(s) && len(s) <= most && strings.Trim(s, bytes) == ""
}

// arn returns the role's ARN in the partition of the region.
func (r Role) arn(region string) string {
	return "arn:" + partitionOf(region) + ":iam::" + r.Account + ":role/" + r.Name
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
