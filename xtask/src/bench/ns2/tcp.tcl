# TCP flows between two nodes: ns tcp.tcl RECOVERY RATE_MBIT DELAY_MS QUEUE LOSS SEED SECONDS CUT WINDOW [SECOND]
#
# RECOVERY may be linux-LAW: SACK and a law of the Linux kernel. With SECOND, another flow begins at that time.
# Prints a line for each flow: the last segment acknowledged at CUT and at SECONDS, data packets sent, and those sent again.
# Scheduler, packet headers and everything not set here are ns-2's defaults.

foreach {recovery rate delay queue loss seed seconds cut window second} $argv break
set starts [list 0.0]
if {$second ne ""} { lappend starts $second }

array set agents {tahoe Agent/TCP reno Agent/TCP/Reno newreno Agent/TCP/Newreno sack Agent/TCP/Sack1}
set sink_class Agent/TCPSink
set law ""
regexp {^linux-(.*)$} $recovery -> law
if {$recovery eq "sack" || $law ne ""} { set sink_class Agent/TCPSink/Sack1 }

Agent/TCP set packetSize_ 1460
Agent/TCP set window_ $window
Agent/TCP set overhead_ 0
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.01
Agent/TCP set windowInit_ 2

set ns [new Simulator]
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver ${rate}Mb ${delay}ms DropTail
# DropTail holds one packet less than its limit.
$ns queue-limit $sender $receiver [expr {$queue + 1}]
$ns queue-limit $receiver $sender 1000000

if {$loss > 0} {
    # Seeds are substreams of one generator: neighbouring seeds of it begin alike.
    set rng [new RNG]
    for {set i 0} {$i < $seed} {incr i} { $rng next-substream }
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $rng
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $loss
    $errors ranvar $uniform
    $errors drop-target [new Agent/Null]
    # Behind the queue, and for data alone.
    $ns link-lossmodel $errors $sender $receiver
}

set flows {}
foreach start $starts {
    if {$law eq ""} {
        set tcp [new $agents($recovery)]
    } else {
        # The kernel's clock: laws of delay see it in their RTTs.
        Agent/TCP set tcpTick_ 0.001
        set tcp [new Agent/TCP/Linux]
        $tcp set timestamps_ true
        $ns at 0 "$tcp select_ca $law"
    }
    set sink [new $sink_class]
    if {$law ne ""} { $sink set ts_echo_rfc1323_ true }
    $ns attach-agent $sender $tcp
    $ns attach-agent $receiver $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
    lappend flows $tcp
}

$ns at $cut {
    foreach tcp $flows { set at_cut($tcp) [$tcp set ack_] }
}
$ns at $seconds {
    foreach tcp $flows {
        puts "$at_cut($tcp) [$tcp set ack_] [$tcp set ndatapack_] [$tcp set nrexmitpack_]"
    }
    exit 0
}
$ns run
