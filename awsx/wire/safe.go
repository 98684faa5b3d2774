package wire

import (
	"bytes"
	"strings"
)

// readers begin the names of operations that change nothing.
var readers = []string{
	"Describe", "Get", "List", "Head", "BatchGet", "Query", "Scan", "Search", "Select", "Lookup", "Simulate", "Validate",
	"Estimate", "Count", "Check", "Test", "Filter", "Preview", "TransactGet", "PartiQLSelect", "Verify",
}

// reads reports whether an operation changes nothing. There are names that begin so
// and mislead: they hand something out once, or count.
func reads(name string) bool {
	switch name {
	case "GetSessionToken", "GetFederationToken", "GetDataKey":
		return true // another is as good
	case "TestInvokeMethod", "TestInvokeAuthorizer":
		return false
	}
	for _, p := range readers {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// repeatable change something, and do no more when they are done again.
//
//   - PutItem and DeleteItem write the same once more; if they have a condition, the
//     second may say that it failed. The SDKs repeat them, too. UpdateItem may count.
//   - Models have no effect but the cost.
//   - Messages deleted twice are deleted; tags, policies and settings are as they were.
var repeatable = map[string]bool{
	"dynamodb.PutItem": true, "dynamodb.DeleteItem": true, "dynamodb.BatchWriteItem": true,
	"bedrock.Converse": true, "bedrock.ConverseStream": true, "bedrock.InvokeModel": true,
	"bedrock.InvokeModelWithResponseStream": true, "bedrock.ApplyGuardrail": true,
	"sqs.DeleteMessage": true, "sqs.DeleteMessageBatch": true, "sqs.ChangeMessageVisibility": true, "sqs.ReceiveMessage": true,
	"sts.AssumeRole": true, "sts.AssumeRoleWithWebIdentity": true, "sts.AssumeRoleWithSAML": true,
	"kms.Decrypt": true, "kms.Encrypt": true, "kms.GenerateDataKey": true, "kms.Sign": true,
	"monitoring.PutMetricAlarm": true, "drs.TerminateRecoveryInstances": true,
}

// tokens are the names under which a request says that it is one and the same.
var tokens = [][]byte{
	[]byte(`"ClientRequestToken"`), []byte(`"clientRequestToken"`), []byte(`"ClientToken"`), []byte(`"clientToken"`),
	[]byte("ClientToken="), []byte("ClientRequestToken="), []byte(`"IdempotencyToken"`), []byte(`"idempotencyToken"`),
}

// safe reports whether an operation may be repeated although it may have been done.
func safe(service, name string, r Request) bool {
	if reads(name) || repeatable[service+"."+name] {
		return true
	}
	for _, t := range tokens {
		if bytes.Contains(r.Form, t) {
			return true
		}
	}
	return false
}
