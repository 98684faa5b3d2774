package awsx

import "time"

// A quota is a quota that AWS publishes for an account and a region: the amount, the operations, and the scope. All were read in
// November 2026.
type quota struct {
	name       string
	amount     int64
	per        time.Duration // 0 means a second
	burst      int64
	operations []string // none means all
	scope      string
	unit       string
	source     string // URL of the documentation
}

const (
	s3Guide      = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"
	ec2Guide     = "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"
	stsGuide     = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
	lambdaGuide  = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
	watchGuide   = "https://docs.aws.amazon.com/general/latest/gr/cw_region.html"
	dynamoGuide  = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-control-plane.html"
	drsUnwritten = "not published by AWS; users observe 10 requests per second with bursts of 20"
)

// quotas are the quotas that hold without regard to an account's history, by the service's name in signatures. Bursts are as
// published. Unpublished ones are a tenth of a second's amount, so that no second exceeds the quota by more than that.
var quotas = map[string][]quota{
	"s3": {
		{name: "reads", amount: 5500, burst: 550, operations: s3Reads, scope: Prefix, source: s3Guide},
		{name: "writes", amount: 3500, burst: 350, operations: s3Writes, scope: Prefix, source: s3Guide},
	},
	"drs":        {{name: "requests", amount: 10, burst: 20, source: drsUnwritten}},
	"sts":        {{name: "requests", amount: 600, burst: 60, operations: stsAll, source: stsGuide}},
	"dynamodb":   {{name: "control", amount: 2500, burst: 250, operations: dynamoControl, source: dynamoGuide}},
	"monitoring": watchQuotas,
	"lambda": {
		{name: "GetFunction", amount: 100, burst: 10, operations: []string{"GetFunction"}, source: lambdaGuide},
		{name: "GetPolicy", amount: 15, burst: 2, operations: []string{"GetPolicy"}, source: lambdaGuide},
		{name: "control", amount: 15, burst: 2, operations: lambdaControl, source: lambdaGuide}, // of all operations together
	},
	"ec2": ec2Quotas,
}

var s3Reads = []string{
	"GetObject", "HeadObject", "ListObjects", "ListObjectsV2", "ListObjectVersions", "ListParts", "ListMultipartUploads", "GetObjectAttributes",
	"GetObjectTagging", "GetObjectAcl", "SelectObjectContent",
}

var s3Writes = []string{
	"PutObject", "CopyObject", "DeleteObject", "DeleteObjects", "CreateMultipartUpload", "UploadPart", "UploadPartCopy", "CompleteMultipartUpload",
	"AbortMultipartUpload", "PutObjectTagging", "DeleteObjectTagging", "PutObjectAcl", "RestoreObject", "RenameObject",
}

var stsAll = []string{
	"AssumeRole", "DecodeAuthorizationMessage", "GetAccessKeyInfo", "GetCallerIdentity", "GetFederationToken", "GetSessionToken",
}

var dynamoControl = []string{
	"CreateTable", "DeleteTable", "DescribeTable", "ListTables", "UpdateTable", "DescribeTimeToLive", "UpdateTimeToLive", "DescribeContinuousBackups",
	"UpdateContinuousBackups", "CreateBackup", "DeleteBackup", "DescribeBackup", "ListBackups", "RestoreTableFromBackup", "RestoreTableToPointInTime",
	"DescribeLimits", "ListTagsOfResource", "TagResource", "UntagResource", "DescribeContributorInsights", "UpdateContributorInsights",
	"ListContributorInsights", "CreateGlobalTable", "DescribeGlobalTable", "ListGlobalTables", "UpdateGlobalTable", "ExportTableToPointInTime",
	"DescribeExport", "ListExports", "ImportTable", "DescribeImport", "ListImports",
}

// Operations whose rate the capacity of a table bounds.
var (
	dynamoReads  = []string{"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"}
	dynamoWrites = []string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
)

var lambdaControl = []string{
	"AddLayerVersionPermission", "AddPermission", "CreateAlias", "CreateCodeSigningConfig", "CreateEventSourceMapping", "CreateFunction",
	"CreateFunctionUrlConfig", "DeleteAlias", "DeleteCodeSigningConfig", "DeleteEventSourceMapping", "DeleteFunction",
	"DeleteFunctionCodeSigningConfig", "DeleteFunctionConcurrency", "DeleteFunctionEventInvokeConfig", "DeleteFunctionUrlConfig",
	"DeleteLayerVersion", "DeleteProvisionedConcurrencyConfig", "GetAccountSettings", "GetAlias", "GetCodeSigningConfig", "GetEventSourceMapping",
	"GetFunctionCodeSigningConfig", "GetFunctionConcurrency", "GetFunctionConfiguration", "GetFunctionEventInvokeConfig",
	"GetFunctionRecursionConfig", "GetFunctionUrlConfig", "GetLayerVersion", "GetLayerVersionByArn", "GetLayerVersionPolicy",
	"GetProvisionedConcurrencyConfig", "GetRuntimeManagementConfig", "ListAliases", "ListCodeSigningConfigs", "ListEventSourceMappings",
	"ListFunctionEventInvokeConfigs", "ListFunctionUrlConfigs", "ListFunctions", "ListFunctionsByCodeSigningConfig", "ListLayerVersions",
	"ListLayers", "ListProvisionedConcurrencyConfigs", "ListTags", "ListVersionsByFunction", "PublishLayerVersion", "PublishVersion",
	"PutFunctionCodeSigningConfig", "PutFunctionConcurrency", "PutFunctionEventInvokeConfig", "PutFunctionRecursionConfig",
	"PutProvisionedConcurrencyConfig", "PutRuntimeManagementConfig", "RemoveLayerVersionPermission", "RemovePermission", "TagResource",
	"UntagResource", "UpdateAlias", "UpdateCodeSigningConfig", "UpdateEventSourceMapping", "UpdateFunctionCode",
	"UpdateFunctionConfiguration", "UpdateFunctionEventInvokeConfig", "UpdateFunctionUrlConfig",
}

// watchQuotas are separate for each operation.
var watchQuotas = []quota{
	{name: "data", amount: 500, burst: 50, operations: []string{"PutMetricData", "GetMetricData"}, scope: Operation, source: watchGuide},
	{name: "GetMetricStatistics", amount: 400, burst: 40, operations: []string{"GetMetricStatistics"}, source: watchGuide},
	{name: "ListMetrics", amount: 25, burst: 3, operations: []string{"ListMetrics"}, source: watchGuide},
	{name: "twenties", amount: 20, burst: 2, operations: []string{"DescribeAlarmHistory", "GetMetricWidgetImage", "DescribeInsightRules", "TagResource", "UntagResource"}, scope: Operation, source: watchGuide},
	{name: "tens", amount: 10, burst: 1, operations: []string{
		"GetDashboard", "ListDashboards", "PutDashboard", "DeleteDashboards", "GetMetricStream", "ListMetricStreams", "PutMetricStream", "DeleteMetricStream",
		"StartMetricStreams", "StopMetricStreams", "PutAnomalyDetector", "DescribeAnomalyDetectors", "ListTagsForResource",
	}, scope: Operation, source: watchGuide},
	{name: "alarm-lists", amount: 9, burst: 1, operations: []string{"DescribeAlarms", "DescribeAlarmsForMetric", "DescribeAlarmContributors"}, scope: Operation, source: watchGuide},
	{name: "fives", amount: 5, burst: 1, operations: []string{"PutInsightRule", "DeleteInsightRules", "DeleteAnomalyDetector"}, scope: Operation, source: watchGuide},
	{name: "alarms", amount: 3, burst: 1, operations: []string{
		"PutMetricAlarm", "PutCompositeAlarm", "DeleteAlarms", "DisableAlarmActions", "EnableAlarmActions", "SetAlarmState", "PutLogAlarm", "PutAlarmMuteRule", "DeleteAlarmMuteRule",
	}, scope: Operation, source: watchGuide},
	{name: "insights", amount: 1, burst: 1, operations: []string{"EnableInsightRules", "DisableInsightRules"}, scope: Operation, source: watchGuide},
}

// ec2Quotas are separate buckets for each operation: for reads, for writes, and for operations with less. Some writes have more
// than the 50 and 5 here: a burst of 100 or, for tags, 10 a second. Lists of instances and similar operations use the smaller
// bucket that applies without a filter.
var ec2Quotas = []quota{
	{name: "reads", amount: 20, burst: 100, scope: Operation, unit: Reads, source: ec2Guide},
	{name: "writes", amount: 5, burst: 50, scope: Operation, unit: Writes, source: ec2Guide},
	{name: "unfiltered", amount: 10, burst: 50, operations: []string{
		"DescribeInstances", "DescribeInstanceStatus", "DescribeNetworkInterfaces", "DescribeSecurityGroups", "DescribeSnapshots",
		"DescribeSpotInstanceRequests", "DescribeVolumes",
	}, scope: Operation, source: ec2Guide},
	{name: "starts", amount: 2, burst: 5, operations: []string{"RunInstances", "StartInstances"}, scope: Operation, source: ec2Guide},
	{name: "instances-up", amount: 2, burst: 1000, operations: []string{"RunInstances", "StartInstances"}, scope: Operation, unit: Items, source: ec2Guide},
	{name: "instances-down", amount: 20, burst: 1000, operations: []string{"StopInstances", "TerminateInstances"}, scope: Operation, unit: Items, source: ec2Guide},
	{name: "gateways", amount: 1, burst: 10, operations: []string{
		"AcceptVpcEndpointConnections", "RejectVpcEndpointConnections", "AssignPrivateNatGatewayAddress", "UnassignPrivateNatGatewayAddress",
		"AssociateNatGatewayAddress", "DisassociateNatGatewayAddress", "CreateNatGateway", "DeleteNatGateway",
		"AssociateEnclaveCertificateIamRole", "DisassociateEnclaveCertificateIamRole", "GetAssociatedEnclaveCertificateIamRoles",
		"CreateVpcEndpointServiceConfiguration", "DeleteVpcEndpointServiceConfigurations", "ModifyVpcEndpointServiceConfiguration",
	}, scope: Operation, source: ec2Guide},
	{name: "CopyImage", amount: 1, burst: 100, operations: []string{"CopyImage"}, source: ec2Guide},
	{name: "references", amount: 5, burst: 20, operations: []string{"DescribeSecurityGroupReferences", "DescribeStaleSecurityGroups"}, scope: Operation, source: ec2Guide},
	{name: "fleets", amount: 3, burst: 50, operations: []string{"DescribeSpotFleetRequests", "CreateSpotDatafeedSubscription", "DeleteSpotDatafeedSubscription"}, scope: Operation, source: ec2Guide},
	{name: "fleet-history", amount: 5, burst: 100, operations: []string{"DescribeSpotFleetInstances", "DescribeSpotFleetRequestHistory"}, scope: Operation, source: ec2Guide},
	{name: "formats", amount: 10, burst: 10, operations: []string{
		"DescribeAggregateIdFormat", "DescribeIdFormat", "DescribeIdentityIdFormat", "DescribePrincipalIdFormat", "DescribeReservedInstancesOfferings",
	}, scope: Operation, source: ec2Guide},
	{name: "vpn", amount: 2, burst: 5, operations: []string{
		"AuthorizeClientVpnIngress", "RevokeClientVpnIngress", "CreateClientVpnRoute", "DeleteClientVpnRoute", "EnableFastLaunch", "DisableFastLaunch",
		"DescribeHostReservations", "DescribeHostReservationOfferings", "GetHostReservationPurchasePreview", "PurchaseHostReservation",
	}, scope: Operation, source: ec2Guide},
	{name: "singles", amount: 1, burst: 1, operations: []string{
		"CreateDefaultSubnet", "CreateDefaultVpc", "DescribeInstanceTopology", "DescribeMovingAddresses", "MoveAddressToVpc", "RestoreAddressToClassic",
	}, scope: Operation, source: ec2Guide},
	{name: "endpoints", amount: 3, per: 10 * time.Second, burst: 4, operations: []string{"CreateVpcEndpoint", "DeleteVpcEndpoints", "ModifyVpcEndpoint"}, scope: Operation, source: ec2Guide},
	{name: "capacity-blocks", amount: 15, per: 100 * time.Second, burst: 10, operations: []string{
		"DescribeCapacityBlockOfferings", "DescribeCapacityBlockExtensionOfferings", "PurchaseCapacityBlock", "PurchaseCapacityBlockExtension",
	}, scope: Operation, source: ec2Guide},
	{name: "image-tasks", amount: 1, per: 10 * time.Second, burst: 50, operations: []string{"CreateRestoreImageTask", "CreateStoreImageTask"}, scope: Operation, source: ec2Guide},
	{name: "seldom", amount: 1, per: 10 * time.Second, burst: 1, operations: []string{
		"AdvertiseByoipCidr", "WithdrawByoipCidr", "ProvisionByoipCidr", "DeprovisionByoipCidr", "EnableImageBlockPublicAccess",
		"DisableImageBlockPublicAccess", "EnableSnapshotBlockPublicAccess", "DisableSnapshotBlockPublicAccess",
	}, scope: Operation, source: ec2Guide},
}
