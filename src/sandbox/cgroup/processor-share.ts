/**
 * What all sandboxes of a host together weigh on the processor, where it has 1, however many they are. They compute and it answers: when both want all of it, a
 * server that let its sandboxes be its equals would keep readers waiting for a third of a second.
 */
export const PROCESSOR_SHARE = 0.25;
