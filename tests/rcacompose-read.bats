# rcacompose read: each format, with the traps that its output holds.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR"
}

# said ENTITY: "status reason onset until" of its line in $output.
said() {
	grep -P "^evidence\t.*entity=\Q$1\E\t" <<<"$output" | tr '\t' '\n' |
		sed -n 's/^\(status\|reason\|onset\|until\)=//p' |
		tr '\n' ' ' | sed 's/ $//'
}

rd() {
	run -0 rcacompose read "$@"
}

# bats test_tags=slow
@test "rcacompose read ethtool takes names with blanks, dots and colons" {
	cat >a <<-'END'
		NIC statistics:
		     port.rx_dropped: 12028
		     duplicate metric: 1
		     queue: 3: drops: 7
	END
	sed 's/12028/12040/; s/drops: 7/drops: 9/' a >b
	previous=(--set host=n --set port=e --previous a --previous-at 1000
		--at 1060)
	rd ethtool "${previous[@]}" \
		--rule 'port.rx_dropped faulty>10 healthy<=0' b
	[[ $(said port:n/e) == "faulty 1000 1060" ]]
	rd ethtool "${previous[@]}" --rule 'duplicate metric faulty>10 healthy<=0' b
	[[ $(said port:n/e) == "healthy 1000 1060" ]]
	rd ethtool "${previous[@]}" --rule 'queue: 3: drops faulty>5 healthy<=0' b
	[[ $(said port:n/e) == "unknown in-band" ]]
	# The counter is not there; it fell; there is one sample only; no times.
	run -3 rcacompose read ethtool "${previous[@]}" \
		--rule 'port.rx_dropped faulty>10 healthy<=0' \
		--rule 'rx_crc faulty>0 healthy<=0' a
	[[ $(said port:n/e) == "unknown missing" ]]
	sed 's/12028/5/' a >c
	rd ethtool "${previous[@]}" \
		--rule 'port.rx_dropped faulty>10 healthy<=0' c
	[[ $(said port:n/e) == "unknown garbled" ]]
	rd ethtool --set host=n --set port=e --at 1060 \
		--rule 'port.rx_dropped faulty>10 healthy<=0' a
	[[ $(said port:n/e) == "unknown nodata" ]]
	run -2 rcacompose read ethtool --previous a --rule 'x faulty>1 healthy<=0' b
	[[ $output == *"no time of its own"* ]]
	# No rule, no status.
	run -3 rcacompose read ethtool "${previous[@]}" b
	[[ $(grep -c ^evidence <<<"$output") == 0 ]]
	run -2 rcacompose read ethtool </dev/null
}

@test "rcacompose read sonic takes commas, N/A and cells of two words" {
	cat >a <<-'END'
		The rates are calculated within 3 seconds period
		    IFACE    STATE            RX_OK        RX_BPS    RX_UTIL    RX_ERR
		---------  -------  ---------------  ------------  ---------  --------
		Ethernet0        U      471,729,839  2000.00 MB/s     64.00%        10
		Ethernet4      N/A                4   204.80 KB/s        N/A       N/A
		Ethernet8        D                4   204.80 KB/s        N/A        10
	END
	sed 's/ 10$/1,030/; s/471,729,839/471,729,999/' a >b
	p=(--set host=s --previous a --previous-at 1000 --at 1060)
	rd sonic "${p[@]}" --rule 'RX_ERR faulty>1000 healthy<=0' b
	[[ $(said port:s/Ethernet0) == "faulty 1000 1060" ]]
	[[ $(said port:s/Ethernet4) == "unknown na" ]]
	rd sonic "${p[@]}" --rule 'RX_OK faulty<1 healthy>=160' b
	[[ $(said port:s/Ethernet0) == "healthy 1000 1060" ]]
	rd sonic --set host=s --at 1060 --rule 'STATE gauge faulty<1 healthy>=1' b
	[[ $(said port:s/Ethernet0) == "healthy 1060 1060" ]]
	[[ $(said port:s/Ethernet4) == "unknown na" ]]
	[[ $(said port:s/Ethernet8) == "faulty 1060" ]] # no onset is known
}

@test "rcacompose read prom takes stamps, labels, NaN; absent is no evidence" {
	cat >a <<-'END'
		# TYPE drops counter
		drops{device="a\"b",x="1"} 5 1000000
		drops{device="c"} NaN 1000000
		drops{device="d",} 7 1000000
		other 3
	END
	sed 's/ 5 1000000/ 50 1060000/; s/ 7 1000000/ 7 1060000/
		s/NaN 1000/NaN 1060/' a >b
	rd prom --entity 'port:{device}' --previous a \
		--rule 'drops faulty>10 healthy<=0' b
	[[ $(said 'port:a"b') == "faulty 1000 1060" ]]
	[[ $(said port:c) == "unknown na" ]]
	[[ $(said port:d) == "healthy 1000 1060" ]]
	[[ $(grep -c ^evidence <<<"$output") == 3 ]]
	# The same stamp twice: an exporter that stopped.
	rd prom --entity 'port:{device}' --previous a \
		--rule 'drops faulty>10 healthy<=0' a
	[[ $(said port:d) == "unknown skew" ]]
	echo 'drops{device="a' >broken
	run -3 rcacompose read prom --entity 'port:{device}' broken
}

@test "rcacompose read prom-api takes values as strings, warnings as partial" {
	cat >a <<-'END'
		{"status":"success","data":{"resultType":"vector","result":[
		{"metric":{"__name__":"up","instance":"h"},"value":[1000.5,"0"]}]}}
	END
	rd prom-api --entity 'host:{instance}' \
		--rule 'up gauge faulty<1 healthy>=1' a
	[[ $output == *$'time=1000.5\tentity=host:h'*status=faulty* ]]
	sed 's/}}$/},"warnings":["one store is down"]}/' a |
		sed ':a;N;$!ba;s/}]}},/}]},/' >b
	rd prom-api --entity 'host:{instance}' \
		--rule 'up gauge faulty<1 healthy>=1' b
	[[ $(said host:h) == "unknown partial" ]]
	sed 's/success/error/' a >c
	run -2 rcacompose read prom-api --entity 'host:{instance}' c
}

@test "rcacompose read dcgm takes blanks for unknown" {
	cat >a <<-'END'
		DCGM_FI_DEV_MEMORY_TEMP{gpu="0", UUID="GPU-1"} 9223372036854775794
		DCGM_FI_DEV_MEMORY_TEMP{gpu="1", UUID="GPU-2"} 99
		DCGM_FI_DEV_XID_ERRORS{gpu="1", UUID="GPU-2"} 79
	END
	rd dcgm --at 1000 \
		--rule 'DCGM_FI_DEV_MEMORY_TEMP gauge faulty>95 healthy<=85' a
	[[ $(said device:GPU-1) == "unknown na" ]]
	[[ $(said device:GPU-2) == "faulty 1000" ]]
	# A gauge of the last Xid says nothing of when: no onset.
	rd dcgm --at 1000 --rule 'DCGM_FI_DEV_XID_ERRORS gauge faulty>0 healthy<=0' a
	[[ $output == *$'entity=device:GPU-2\tagent=dcgm\tstatus=faulty\tuntil='* ]]
}

@test "rcacompose read snmp names rows by ifDescr and distrusts bare numbers" {
	cat >a <<-'END'
		IF-MIB::ifDescr.1 = STRING: eth0
		IF-MIB::ifDescr.2 = STRING: eth1
		IF-MIB::ifOperStatus.1 = INTEGER: up(1)
		IF-MIB::ifOperStatus.2 = INTEGER: 0
		IF-MIB::ifInErrors.1 = Counter32: 4294967290
		IF-MIB::ifInErrors.2 = No Such Instance currently exists at this OID
		IF-MIB::ifInErrors.3 = Counter32: 7
	END
	sed 's/4294967290/5/' a >b # wrapped
	# After a reboot the rows are numbered anew.
	sed 's/eth0/x/; s/eth1/eth0/; s/: x/: eth1/
		s/ifInErrors.1 = .*/ifInErrors.1 = Counter32: 0/
		s/ifInErrors.2 = .*/ifInErrors.2 = Counter32: 4294967295/' a >c
	p=(--set host=h --previous a --previous-at 1000 --at 1060)
	rd snmp "${p[@]}" --rule 'ifInErrors faulty>10 healthy<=5' b
	[[ $(said port:h/eth0) == "unknown garbled" ]]
	[[ $(said port:h/eth1) == "unknown na" ]]
	[[ $(grep -c ^evidence <<<"$output") == 2 ]] # row 3 has no name
	rd snmp "${p[@]}" --rule 'ifInErrors faulty>10 healthy<=5' c
	[[ $(said port:h/eth0) == "healthy 1000 1060" ]]
	rd snmp --set host=h --at 1000 \
		--rule 'ifOperStatus gauge faulty>1 healthy<=1' a
	[[ $(said port:h/eth0) == "healthy 1000 1000" ]]
	[[ $(said port:h/eth1) == "unknown na" ]]
}

@test "rcacompose read ip-link reads the JSON of ip -s -j link" {
	cat >a <<-'END'
		[{"ifname":"l1-s1","flags":["UP"],"operstate":"UP","stats64":{"rx":{"bytes":90,"errors":0,"dropped":0},"tx":{"dropped":0}}},
		 {"ifname":"lo","operstate":"UNKNOWN","stats64":{"rx":{"errors":0},"tx":{}}}]
	END
	sed 's/"dropped":0},"tx"/"dropped":20},"tx"/' a >b
	p=(--set host=l1 --previous a --previous-at 1000 --at 1060)
	rd ip-link "${p[@]}" --rule 'rx.dropped faulty>10 healthy<=0' b
	[[ $(said port:l1/l1-s1) == "faulty 1000 1060" ]]
	rd ip-link --set host=l1 --at 1000 \
		--rule 'operstate gauge faulty<1 healthy>=1' b
	[[ $(said port:l1/lo) == "unknown na" ]]
	run -2 rcacompose read ip-link <<<'[{"ifname":"x","stats64":[1]}]'
}

@test "rcacompose read fping and mtr know how many packets are enough" {
	cat >a <<-'END'
		ICMP Host Unreachable from 10.0.0.1
		10.200.3.3 : xmt/rcv/%loss = 200/180/10%, min/avg/max = 0.006/0.022/0.171
		10.200.3.4 : xmt/rcv/%loss = 200/200/0%, min/avg/max = 0.006/0.022/0.171
		10.200.3.5 : xmt/rcv/%loss = 20/20/0%
		10.200.3.6 : xmt/rcv/%loss = 200/201/0%
	END
	rd fping --since 1000 --at 1060 --rule 'loss gauge faulty>0.01 healthy<=0' a
	[[ $(said flow:10.200.3.3) == "faulty 1000 1060" ]]
	[[ $(said flow:10.200.3.4) == "healthy 1000 1060" ]]
	[[ $(said flow:10.200.3.5) == "unknown nodata" ]]
	[[ $(said flow:10.200.3.6) == "healthy 1000 1060" ]]
	cat >m <<-'END'
		Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,
		MTR.0.95,1000,OK,10.2.3.4,1,10.1.0.1,80.00,200,0,0.01,0.02,0.01,0.03,0.01
		MTR.0.95,1000,OK,10.2.3.4,2,10.2.3.4,0.00,200,0,0.01,0.02,0.01,0.03,0.01
	END
	rd mtr --rule 'loss gauge faulty>0.01 healthy<=0' m
	[[ $(said flow:10.2.3.4) == "healthy 1000 1000" ]] # a lazy router is no loss
}

@test "rcacompose read nvidia-smi names devices by address, not by position" {
	cat >a <<-'END'
		==============NVSMI LOG==============
		Attached GPUs                             : 2
		GPU 00000000:07:00.0
		    ECC Errors
		        Volatile
		            SRAM Uncorrectable Parity     : N/A
		            DRAM Correctable              : 1
		        Aggregate
		            SRAM Uncorrectable Parity     : 9
		    Temperature
		        GPU Current Temp                  : 91 C
		GPU 00000000:9B:00.0
		    ECC Errors
		        Volatile
		            SRAM Uncorrectable Parity     : 2
		            SRAM Threshold Exceeded       : No
		    Temperature
		        GPU Current Temp                  : 41 C
	END
	sed 's/: 2$/: 7/' a >b
	p=(--set host=n --previous a --previous-at 1000 --at 1060)
	rd nvidia-smi "${p[@]}" \
		--rule 'ECC Errors/Volatile/SRAM Uncorrectable* faulty>0 healthy<=0' b
	[[ $(said device:n/00000000:07:00.0) == "unknown na" ]]
	[[ $(said device:n/00000000:9B:00.0) == "faulty 1000 1060" ]]
	rd nvidia-smi --set host=n --at 1060 \
		--rule 'Temperature/GPU Current Temp gauge faulty>90 healthy<=80' b
	[[ $(said device:n/00000000:9B:00.0) == "healthy 1060 1060" ]]
}

# bats test_tags=slow
@test "rcacompose read xid tells hardware from programs, and wants a zone" {
	cat >a <<-'END'
		[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout
		[Sun Feb 23 16:24:19 2025] NVRM: Xid (0000:03:00): 31, Channel 00000001
		[Sun Feb 23 16:24:19 2025] NVRM: Xid (PCI:0000:04:00): 74, NVLink
		[Sun Feb 23 16:24:19 2025] nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up
		[Sun Feb 23 16:24:19 2025] nvidia-nvswitch0: SXid (PCI:0000:00:01.0): 12028, Non-fatal, Link 30
	END
	rd xid --zone +01:00 --set host=n a
	[[ $(said device:n/0000:9b:00) == "faulty 1740324258 1740324258" ]]
	[[ $(said device:n/0000:03:00) == *"unknown"*"application" ]]
	[[ $(said device:n/0000:04:00) == *"unknown"*"ambiguous" ]]
	[[ $(said switch:n/0000:00:00.0) == "faulty"* ]]
	[[ $(said switch:n/0000:00:01.0) == *"non-fatal" ]]
	rd xid --set host=n --at 2000000000 a
	[[ $(said device:n/0000:9b:00) == "faulty" ]] # no zone, no onset
	echo '[  100.500000] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.' >b
	rd xid --boot 1000 b
	[[ $(said device:0000:9b:00) == "faulty 1100.5 1100.5" ]]
	echo 'NVRM: Xid (PCI:0000:9b:00' >c
	run -3 rcacompose read xid c
}

@test "rcacompose read mce, edac and smart read what a host says" {
	cat >a <<-'END'
		[   10.0] mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: b200000000070f0f
	END
	rd mce --set host=n --boot 1000 a
	[[ $(said host:n) == "faulty 1010 1010" ]]
	echo '[   10.0] [Hardware Error]: Corrected error, no action required.' >b
	rd mce --set host=n --boot 1000 b
	[[ $(said host:n) == *"unknown"*"corrected" ]]
	run -2 rcacompose read mce a
	d=/sys/devices/system/edac/mc/mc0
	printf '%s\n' $d/ce_count:5 $d/ue_count:0 >c
	sed 's/ue_count:0/ue_count:1/' c >e
	rd edac --set host=n --previous c --previous-at 1000 --at 1060 \
		--rule 'ue_count faulty>0 healthy<=0' e
	[[ $(said host:n) == "faulty 1000 1060" ]]
	cat >s <<-'END'
		SMART overall-health self-assessment test result: PASSED
		ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
		  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       8
	END
	rd smart --set host=n --set device=sda --at 1000 \
		--rule 'Reallocated_Sector_Ct gauge faulty>50 healthy<=10' \
		--rule 'health gauge faulty<1 healthy>=1' s
	[[ $(said device:n/sda) == "healthy 1000 1000" ]]
}

@test "rcacompose read csv takes tables without a header, and times without a zone" {
	printf '2023-01-01T00:00:00.0000000Z,a,5\n2023-01-01T00:01:00.0000000Z,a,5\n2023-01-01T00:02:00.0000000Z,a,50\n2023-01-01T00:03:00.0000000Z,a,\n' >k
	rd csv --header t,port,err --time t --entity 'port:{port}' \
		--rule 'err faulty>10 healthy<=0' k
	[[ $(sed -n 2p <<<"$output") == *$'status=healthy\tonset=1672531200\tuntil=1672531260' ]]
	[[ $(sed -n 3p <<<"$output") == *$'status=faulty\tonset=1672531260\tuntil=1672531320' ]]
	[[ $(sed -n 4p <<<"$output") == *$'status=unknown\treason=na' ]]
	printf 't,p,e\n\n2023-01-01 00:00:00.5,a,1\n' >n
	run -3 rcacompose read csv --time t --entity 'port:{p}' \
		--rule 'e gauge faulty>10 healthy<=5' n
	rd csv --time t --zone Z --entity 'port:{p}' \
		--rule 'e gauge faulty>10 healthy<=5' n
	[[ $(said port:a) == "healthy 1672531200.5 1672531200.5" ]]
	run -2 rcacompose read csv --time nosuch --entity x n
	run -2 rcacompose read csv n
}

@test "rcacompose read lldp names links, and tells parallel ones apart" {
	cat >a <<-'END'
		lldp.eth0.chassis.name=s1
		lldp.eth0.port.ifname=Ethernet1
		lldp.eth1.chassis.name=s2
		lldp.eth1.port.ifname=Ethernet1
		lldp.eth2.chassis.name=s2
		lldp.eth2.port.ifname=Ethernet2
	END
	rd lldp --set host=l1 a
	[[ $output == *$'alias\tentity=link:s1>l1\tsame=rx:l1/eth0'* ]]
	[[ $output == *$'alias\tentity=link:l1:eth1--s2:Ethernet1\tsame=port:s2/Ethernet1'* ]]
	[[ $output == *$'attach\tchild=link:l1--s1\tparent=switch:s1'* ]]
	run -2 rcacompose read lldp a
}

@test "rcacompose read route makes paths that the aliases of lldp resolve" {
	cat >a <<-'END'
		h1: 10.0.3.3 via 10.0.1.1 dev h1-l1 src 10.0.1.9 uid 0
		    cache
		l1: 10.0.3.3 from 10.0.1.9 via 10.0.9.2 dev l1-s2
	END
	rd route --set flow=x a
	[[ $output == *$'path\tflow=x\thops=tx:h1/h1-l1 tx:l1/l1-s2'* ]]
}

@test "rcacompose read probes clears, blames, and knows what it cannot tell apart" {
	# Six flows over two spines; the link a>s1 loses 2 %.
	{ echo src,dst,sport,sent,recv,rtt_us,path
	  for port in 1 2 3 4; do
		echo "a,b,$port,1000,980,10,a>s1 s1>b"
		echo "a,b,$port,1000,1000,10,a>s2 s2>b"
		echo "c,b,$port,1000,1000,10,c>s1 s1>b"
		echo "a,d,$port,1000,980,10,a>s1 s1>d"
		echo "c,d,$port,1000,1000,10,c>s1 s1>d"
	  done; } >p
	rd probes --since 1000 --at 1060 p
	[[ $(said 'link:a>s1') == "faulty 1000 1060" ]]
	[[ $(said 'link:s1>b') == "healthy 1000 1060" ]]
	[[ $(said 'link:a>s2') == "healthy 1000 1060" ]]
	# Only one flow sees the loss: it could be either of its links.
	grep -v '^a,d\|^c,' p >q
	rd probes --since 1000 --at 1060 q
	[[ $(said 'link:a>s1') == "unknown ambiguous" ]]
	[[ $(said 'link:s1>b') == "unknown ambiguous" ]]
	# Too few packets to say anything.
	sed 's/1000,1000/10,10/; s/1000,980/10,10/' p >r
	rd probes --min-n 1000 p
	rd probes --min-n 100000 p
	[[ $(said 'link:a>s2') == "unknown nodata" ]]
	run -2 rcacompose read probes <<<'a,b,c'
}

# bats test_tags=slow
@test "rcacompose read probes lets paths clear only what they saw at the time" {
	# s1>b breaks at 1059, when only a still probes.
	{ echo src,dst,since,time,sent,recv,path
	  for k in 1 2 3; do
		echo "a,b,1000,1058,900,900,a>s1 s1>b"
		echo "a,e,1000,1058,900,900,a>s1 s1>e"
		echo "c,b,1000,1058,900,900,c>s1 s1>b"
		echo "d,b,1000,1058,900,900,d>s1 s1>b"
		echo "a,b,1059,1060,40,0,a>s1 s1>b"
	  done; } >p
	# All in one batch, those who were not there clear the culprit.
	cut -d , -f 1,2,5- p >batch
	rd probes --since 1000 --at 1060 batch
	[[ $(said 'link:s1>b') == "healthy 1000 1060" ]]
	rd probes --at 1070 p
	[[ $(said 'link:s1>b') == "unknown ambiguous" ]]
	[[ $(said 'link:a>s1') == "unknown ambiguous" ]]
	[[ $(said 'link:c>s1') == "healthy 1000 1058" ]]
	# Who was there, and lost nothing on a>s1, does clear it: and what is
	# said is of the time of the losses.
	echo 'a,e,1059.5,1060,3000,3000,a>s1 s1>e' >>p
	rd probes --at 1070 p
	[[ $(said 'link:a>s1') == "healthy 1000 1060" ]]
	[[ $(said 'link:s1>b') == "unknown ambiguous" ]] # or b itself
	echo 'c,b,1059,1060,2000,2000,c>s2 s2>b' >>p
	rd probes --at 1070 p
	[[ $(said 'link:s1>b') == "faulty 1059 1060" ]]
	[[ $output == *$'evidence\ttime=1060\tentity=link:s1>b\t'* ]]
	# A time that is none, and an end before the begin, are bad rows.
	printf 'a,b,1061,1060,9,9,x>y\na,b,,noon,9,9,x>y\n' >>p
	run -3 --separate-stderr rcacompose read probes --at 1070 p
	[[ $stderr == *"2 lines not understood"* && $output != *'x>y'* ]]
	run -2 rcacompose read probes <<<'src,dst,since,sent,recv,path'
	[[ $output == *'no column "time"'* ]]
}

@test "rcacompose read probes does not blame the good link before two bad ones" {
	# s>x and s>y lose 5 %; a reaches them over a>s, b over b>s as well, and
	# c over a spine of its own: more is lost on a>s than on either.
	{ echo src,dst,sent,recv,path
	  echo "a,x,4000,3800,a>s s>x"
	  echo "a,y,4000,3800,a>s s>y"
	  echo "b,x,2000,1900,b>s s>x"
	  echo "b,y,2000,1900,b>s s>y"
	  echo "c,x,4000,4000,c>t t>x"
	  echo "c,y,4000,4000,c>t t>y"
	  echo "a,z,4000,4000,a>t t>z"
	} >p
	rd probes --since 1000 --at 1060 p
	[[ $output != *$'entity=link:a>s\tagent=probes\tstatus=faulty'* ]]
	[[ $(said 'link:a>s') == "unknown ambiguous" ]]
	# Ten times as bad as they are, it is one of its own.
	sed 's/4000,3800/4000,2000/' p >q
	rd probes --since 1000 --at 1060 q
	[[ $(said 'link:a>s') == "faulty 1000 1060" ]]
}

@test "rcacompose read probes does not blame the way back for the way there" {
	# a>s loses a fifth; all of its paths come back over m>a, where paths to
	# b lose a little as well, because of m>b.
	{ echo src,dst,sent,recv,path
	  for h in 1 2; do
		echo "h$h,c,1000,800,h$h>a a>s s>c c>m m>a a>h$h"
		echo "h$h,d,4000,4000,h$h>a a>m m>d d>m m>a a>h$h"
		echo "h$h,b,2000,1900,h$h>a a>m m>b b>m m>a a>h$h"
		echo "h$h,k,4000,4000,h$h>a a>u u>k k>u u>a a>h$h"
	  done
	  echo "e,b,4000,3800,e>m m>b b>m m>e"
	  echo "e,c,4000,4000,e>s s>c c>m m>e"; } >p
	rd probes --since 1000 --at 1060 p
	[[ $(said 'link:m>a') == "unknown ambiguous" ]]
	[[ $(said 'link:a>s') == "unknown ambiguous" ]]
	[[ $(said 'link:s>c') == "healthy 1000 1060" ]]
	# With a path that comes back another way, it is known.
	echo "h1,c,1000,800,h1>a a>s s>c c>u u>a a>h1" >>p
	rd probes --since 1000 --at 1060 p
	[[ $(said 'link:a>s') == "faulty 1000 1060" ]]
}

@test "rcacompose read records passes evidence on and turns findings into it" {
	printf 'evidence\ttime=1\tentity=link:a>b\tagent=x\tstatus=faulty\n' >a
	rd records a
	[[ $output == *$'evidence\ttime=1\tentity=link:a>b\tagent=x\tstatus=faulty'* ]]
	printf 'finding\tentity=device:g\tresult=faulty\n' >b
	# Nobody types findings: without head and end some may be missing.
	run -3 rcacompose read records --agent replay --at 1000 --since 900 b
	[[ $output == *$'time=1000\tentity=device:g\tagent=replay\tstatus=faulty\tonset=900'* ]]
}

@test "rcacompose read joins the samples of a long table in constant memory" {
	awk 'BEGIN { print "t,p,e"
		for (i = 0; i < 300000; i++)
			print 1000 + i ",a," (i < 200000 ? 5 : 5 + i) }' >long
	rd csv --time t --entity 'port:{p}' --rule 'e faulty>100 healthy<=1' long
	[[ $(grep -c ^evidence <<<"$output") == 3 ]]
}

@test "rcacompose read says which rule met nothing, and what has no name" {
	printf 'NIC statistics:\n     rx_errors: 5\n' >before
	printf 'NIC statistics:\n     rx_errors: 60\n' >after
	p=(--previous before --previous-at 1000 --at 1060)
	run -3 --separate-stderr rcacompose read ethtool "${p[@]}" \
		--set host=n --set port=e --rule 'rx_erors faulty>10 healthy<=0' after
	[[ $stderr == *'rule "rx_erors" met no counter'* ]]
	[[ $output == *$'end\t'*status=3*skipped=1* ]]
	run -3 --separate-stderr rcacompose read ethtool "${p[@]}" \
		--set host=n --rule 'rx_errors faulty>10 healthy<=0' after
	[[ $stderr == *"1 samples without what port:{host}/{port} asks for"* ]]
	run -3 --separate-stderr rcacompose read ethtool "${p[@]}" after
	[[ $stderr == *"1 samples and no --rule"* ]]
	# It must be there now; that it was there once is not enough.
	sed 's/rx_errors/other/' after >gone
	run -3 rcacompose read ethtool "${p[@]}" --set host=n --set port=e \
		--rule 'rx_errors faulty>10 healthy<=0' gone
	[[ $output != *status=healthy* && $output != *status=faulty* ]]
	run -2 rcacompose read xid --rule 'x faulty>1 healthy<=0' /dev/null
}

@test "rcacompose read probes judges loss by the limits of its rule" {
	{ echo src,dst,sent,recv,path
	  for h in a b c d; do
		echo "$h,x,1000,999,$h>s s>x"; echo "$h,y,1000,997,$h>s s>y"
	  done; } >p
	rd probes --since 1000 --at 1060 p
	[[ $(said 'link:s>y') == "unknown in-band" ]]
	rd probes --since 1000 --at 1060 --rule 'loss faulty>0.002 healthy<=0.0015' p
	[[ $(said 'link:s>x') == "healthy 1000 1060" ]]
	[[ $(said 'link:s>y') != "unknown in-band" ]]
	run -2 rcacompose read probes --rule 'los faulty>0.002 healthy<=0.001' p
	[[ $output == *"probes take one --rule"* ]]
}
