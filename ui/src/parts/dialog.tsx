// Owns dialogs: one at a time, above everything, left with Escape, the focus back where it was.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** Shown as long as it is rendered. `onClose`: Escape, or a click beside it. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const { title, onClose, children } = props;
  const box = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key is Escape, and the dialog's own
    <dialog
      ref={box}
      class="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === box.current && onClose()}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** A question before something that can't be taken back. */
export function Confirm(props: {
  title: string;
  children: ComponentChildren;
  /** What the button that does it says. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
}) {
  const { title, children, action, onConfirm, onClose } = props;
  const confirm = (): void => {
    onClose();
    onConfirm();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={confirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}
